"""A device that is made up, and its streams; ``virtual`` has the host."""

from dataclasses import dataclass
from typing import Protocol

from pulse.support.not_copyable import NotCopyable
from streaming.hosts.host import StreamRequest
from streaming.live.device_call import DeviceCall
from streaming.native.control_block import control_at
from streaming.sound.channels import Samples

SECOND = 1_000_000_000


@dataclass
class VirtualDevice:
    """A device. What it is like may be changed while it runs.

    inputs, outputs    channels
    rate_hz            its default sample rate
    rates_hz           all that it takes; any where None
    clock_ppm          by how many millionths its clock is faster than the host's
    input_latency_s    from the first sample of a block until the callback, as the device states it
    output_latency_s   from the callback until the first sample of the block is played
    jitter_s           by how much its callbacks are late, at most; at random
    present            False: it is unplugged; it is not found, and it does not call
    stalled            True: it does not call, and says nothing
    hangs              True: it cannot be stopped within any limit
    inside             True: nor has its last call returned
    refuses            why it cannot be opened; None: it can
    """

    name: str = "virtual"
    inputs: int = 1
    outputs: int = 1
    rate_hz: int = 48000
    rates_hz: tuple[int, ...] | None = None
    clock_ppm: float = 0.0
    input_latency_s: float = 0.0
    output_latency_s: float = 0.0
    jitter_s: float = 0.0
    present: bool = True
    stalled: bool = False
    hangs: bool = False
    in_callback: bool = False
    refuses: str | None = None


class _Host(Protocol):
    def now_ns(self) -> int: ...

    def note_close(self, stream: "VirtualStream", took_s: float) -> None: ...


class VirtualStream(NotCopyable):
    """A stream that is open; see ``host.OpenStream``."""

    why_not = "it is open on one host; open another one"

    note: str | None = None
    in_callback = False

    def __init__(self, host: _Host, request: StreamRequest, device: VirtualDevice) -> None:
        self.request, self.device = request, device
        self.input_latency_s, self.output_latency_s = device.input_latency_s, device.output_latency_s
        self._host = host
        self._call = DeviceCall(request)
        self._control = control_at(request.user_address)
        self._running = False
        self.begin()

    def start(self) -> None:
        """Let the callbacks begin."""
        self._running = True
        self.begin()

    def begin(self) -> None:
        """The next block begins now."""
        self._begun_ns, self._frames = self._host.now_ns(), 0

    def stop(self, limit_s: float) -> bool:
        """End the callbacks; where the device hangs, the limit passes, and the answer is False."""
        self._running = False
        self.in_callback = self.device.in_callback
        answers = not (self.device.hangs or self.in_callback)
        self._host.note_close(self, 0.0 if answers else limit_s)
        return answers

    @property
    def calls(self) -> bool:
        """Whether its device calls."""
        return self._running and self.device.present and not self.device.stalled

    def due_ns(self, frames: int) -> int:
        """When the next block is full, if it has this many frames."""
        rate_hz = self.request.rate_hz * (1 + self.device.clock_ppm / 1e6)
        return self._begun_ns + round((self._frames + frames) * SECOND / rate_hz)

    def pass_by(self, frames: int) -> None:
        """A block of this many frames is full."""
        self._frames += frames

    def call(self, captured: Samples | int, flags: int) -> Samples:
        """The callback, now; what it plays. Where it does not answer that it goes on, the stream ends."""
        now_s = self._host.now_ns() / SECOND
        times_s = now_s - self.input_latency_s, now_s, now_s + self.output_latency_s
        played, answer = self._call(captured, flags, times_s)
        if answer:
            self.finish()
        return played

    def finish(self) -> None:
        """The device ends by itself, and says so."""
        if self._running:
            self._running = False
            self.request.finished()

    def set_time(self, ns: int) -> None:
        """Tell the callback what time it is."""
        self._control.virtual_now_ns = ns
