"""Virtual devices on a virtual clock: live runs without sound cards and without waiting.

    device = VirtualDevice(rate_hz=16000)
    host = VirtualHost(device, compute_s=0.002)
    with Live(program, Plan(16000, block_frames=160), host=host) as live:
        played = host.run(sound)            # block by block, as fast as they can be computed
        host.stall(0.05)                    # nothing is computed for 50 ms
        device.jitter_s = 0.004
        played = host.run(sound)
        print(live.statistics().counters.frames_silent)

A sound card calls the same callback. Everything runs on the thread that calls the host.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, repeat

import numpy as np

from pulse.errors import InputError
from streaming.audio.channels import Samples
from streaming.errors import DeviceError
from streaming.hosts.devices import Device, DeviceKind, choose_device
from streaming.hosts.host import DeviceStream, Endpoint, StreamRequest
from streaming.live.pipeline import Pipeline
from streaming.live.watchdog import SUPERVISION_PERIOD_S
from streaming.virtual.device import SECOND_NS, VirtualDevice, VirtualStream
from streaming.virtual.virtual_worker import VirtualWorker

__all__ = ["VirtualDevice", "VirtualHost", "VirtualStream"]


class VirtualHost:
    """A host of virtual devices and a virtual clock, for one run at a time.

    See ``live.virtual_clock.VirtualClockHost``.

    devices    the devices; the first with inputs and the first with outputs are the defaults
    compute_s  the duration of a pulse on the virtual clock; may be changed
    seed       the seed of the jitter
    streams    the open streams
    """

    virtual_clock = True
    is_finite = False

    def __init__(self, *devices: VirtualDevice, compute_s: float = 0.0, seed: int = 0) -> None:
        self.devices = devices or (VirtualDevice(),)
        self.compute_s = compute_s
        self.streams: tuple[VirtualStream, ...] = ()
        self._ns = SECOND_NS
        self._worker: VirtualWorker | None = None
        self._pipeline: Pipeline | None = None
        self._look: Callable[[], None] | None = None
        self._look_ns = 0
        self._last: VirtualStream | None = None
        self._channels_out = 0
        self._random = np.random.default_rng(seed)

    def run(self, captured: Samples, blocks: int | Iterable[int] | None = None) -> Samples:
        """Feed audio to the input, block by block, and return the audio played meanwhile: [frames, channels_out].

        captured  [frames, channels_in], or [frames] for one channel
        blocks    the frames of each block, or a cycle of block sizes; the run's block size if None
        Raises    InputError: not a multiple of the block size, or no device is open

        While the device does not call, time passes, and nothing is recorded or played.
        """
        captured = captured[:, None] if captured.ndim == 1 else captured
        pieces: list[Samples] = [self._silence()]
        start = 0
        for frames in self._sizes(blocks, len(captured)):
            pieces.append(self.tick(captured[start : start + frames]))
            start += frames
        return np.concatenate(pieces)

    def tick(self, captured: Samples, flags: int = 0, late_s: float = 0.0) -> Samples:
        """Advance the clock until a block is full, make the device's call, and return the audio played meanwhile.

        captured  [frames, channels_in]
        flags     PortAudio's flags, see ``callback_signature``
        late_s    how late the call is, in seconds; later blocks are in time again
        Raises    InputError: a wrong number of channels, or no device is open
        """
        source = self._source()
        due_ns = source.due_ns(len(captured)) + self._late_ns(source, late_s)
        pieces = [self._silence(), *self._play_until(due_ns)]
        self._pass(due_ns)
        source.count_block(len(captured))
        if source.calls:
            played = self._call(source, captured, flags)
            pieces += [played] if source.request.channels_out else []
        return np.concatenate(pieces)

    def advance(self, seconds: float) -> None:
        """Advance the clock without a call of the device; pulses in progress may become ready."""
        self._pass(self._ns + round(seconds * SECOND_NS))
        for stream in self.streams:
            stream.restart_clock()

    def stall(self, seconds: float) -> None:
        """Stop computing for this time from now on; the pulse in progress finishes that much later."""
        if self._worker is not None:
            self._worker.stall(round(seconds * SECOND_NS))

    def finish(self) -> None:
        """Make the input device end its stream and report it. Raises InputError: no device is open."""
        self._source().finish()

    def now_ns(self) -> int:
        """Return the time of the virtual clock in ns."""
        return self._ns

    def set_ns(self, ns: int) -> None:
        """Set the clock, without running the events that are due in between."""
        self._ns = ns
        if self._pipeline is not None:
            self._pipeline.set_time(ns)
        for stream in self.streams:
            stream.set_time(ns)

    def attach(self, pipeline: Pipeline, look: Callable[[], None]) -> None:
        """Compute each pulse of a pipeline from now on, and call ``look`` at the interval of a supervisor.

        Raises InputError: another run is still attached
        """
        if self._pipeline is not None:
            raise InputError("this virtual host has a run already: end it, or take another host")
        self._pipeline, self._look, self._worker = pipeline, look, VirtualWorker(pipeline, self)
        self._look_ns = self._ns + round(SUPERVISION_PERIOD_S * SECOND_NS)
        self.set_ns(self._ns)

    def detach(self, pipeline: Pipeline) -> None:
        """Stop computing the pulses of this pipeline."""
        if self._pipeline is pipeline:
            self._pipeline = self._look = self._worker = None

    def choose(self, kind: DeviceKind, requested: str | int | None) -> Endpoint:
        """Find a device by number or a part of its name; the default if None. Raises InputError: there is none."""
        device = choose_device(self._list(), kind, requested)
        return Endpoint(device.name, device.index, device.channels(kind), device.default_rate_hz)

    def open(self, request: StreamRequest) -> VirtualStream:
        """Open a stream. Raises DeviceError: the device is absent, refuses, or does not support the rate."""
        device = self._device(request)
        reason = device.refuses if device.present else "it is no longer available"
        if reason is None and device.rates_hz is not None and request.rate_hz not in device.rates_hz:
            reason = f"it does not run at {request.rate_hz} Hz but at {', '.join(map(str, device.rates_hz))}"
        if reason is not None:
            raise DeviceError(f"{device.name}: cannot be opened, {reason}")
        stream = VirtualStream(self, request, device)
        self.streams = (*self.streams, stream)
        if request.channels_in:
            self._last = stream
        self._channels_out = sum(other.request.channels_out for other in self.streams)
        self.set_ns(self._ns)
        return stream

    def record_close(self, stream: DeviceStream, took_s: float) -> None:
        """Record that a stream was closed, and how long that took."""
        self.streams = tuple(other for other in self.streams if other is not stream)
        self.set_ns(self._ns + round(took_s * SECOND_NS))

    def refresh(self) -> bool:
        """Return True: the devices are listed again at each call."""
        return True

    def _device(self, request: StreamRequest) -> VirtualDevice:
        endpoint = request.source or request.target
        if endpoint is None or endpoint.index is None:
            raise DeviceError("no device is requested: give one for input or output")
        return self.devices[endpoint.index]

    def _list(self) -> list[Device]:
        """Return the devices that are present; the first of each kind is the default."""
        present = [(index, device) for index, device in enumerate(self.devices) if device.present]
        first_input = next((index for index, device in present if device.inputs), None)
        plays = next((index for index, device in present if device.outputs), None)
        return [
            Device(
                index=index,
                name=device.name,
                host_api="virtual",
                inputs=device.inputs,
                outputs=device.outputs,
                default_rate_hz=device.rate_hz,
                low_input_latency_s=device.input_latency_s,
                high_input_latency_s=device.input_latency_s,
                low_output_latency_s=device.output_latency_s,
                high_output_latency_s=device.output_latency_s,
                default_in=index == first_input,
                default_out=index == plays,
            )
            for index, device in present
        ]

    def _source(self) -> VirtualStream:
        """Return the input stream. If it is closed, it still has the duration of a block."""
        if self._last is None:
            raise InputError("no virtual device is open: begin a live run on this host")
        return self._last

    def _silence(self) -> Samples:
        return np.zeros((0, self._channels_out), np.float32)

    def _sizes(self, blocks: int | Iterable[int] | None, frames: int) -> Iterator[int]:
        size = self._source().request.block_frames if blocks is None else blocks
        if isinstance(size, int) and (size < 1 or frames % size):
            raise InputError(
                f"{frames} frames are not a multiple of the block size {size}; give blocks of other sizes"
            )
        sizes = repeat(size) if isinstance(size, int) else cycle(size)
        while frames > 0:
            count = min(next(sizes), frames)
            frames -= count
            yield count

    def _late_ns(self, stream: VirtualStream, late_s: float) -> int:
        return round((late_s + self._random.uniform(0, stream.device.jitter_s)) * SECOND_NS)

    def _play_until(self, ns: int) -> Iterator[Samples]:
        """Call the devices that only play up to a time; yield their blocks."""
        while True:
            targets = [stream for stream in self.streams if not stream.request.channels_in]
            if not targets or targets[0].due_ns(targets[0].request.block_frames) > ns:
                return
            target, frames = targets[0], targets[0].request.block_frames
            self._pass(target.due_ns(frames) + self._late_ns(target, 0.0))
            target.count_block(frames)
            if target.calls:
                yield self._call(target, frames, 0)

    def _call(self, stream: VirtualStream, captured: Samples | int, flags: int) -> Samples:
        if self._worker is not None:
            self._worker.prepare_callback()
        played = stream.call(captured, flags)
        if self._worker is not None:
            self._worker.finish_callback()
        return played

    def _pass(self, until_ns: int) -> None:
        """Advance the clock, and run the events that are due meanwhile."""
        while True:
            worker_ns = None if self._worker is None else self._worker.due_ns
            look_ns = None if self._look is None else self._look_ns
            first_ns = min((ns for ns in (worker_ns, look_ns) if ns is not None), default=until_ns + 1)
            if first_ns > until_ns:
                break
            self.set_ns(max(first_ns, self._ns))
            if self._worker is not None and first_ns == worker_ns:
                self._worker.step()
            elif self._look is not None:
                self._look_ns += round(SUPERVISION_PERIOD_S * SECOND_NS)
                self._look()
        self.set_ns(max(until_ns, self._ns))
