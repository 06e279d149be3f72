"""A simulated device and its streams; ``virtual.host`` has the host."""

from dataclasses import dataclass

from pulse.support.not_copyable import NotCopyable
from streaming.audio.channels import Samples
from streaming.hosts.host import StreamRequest
from streaming.live.device_call import DeviceCall
from streaming.live.virtual_clock import VirtualClockHost
from streaming.native.control_block import control_at

SECOND_NS = 1_000_000_000
"""One second."""


@dataclass
class VirtualDevice:
    """A simulated device. Its attributes may be changed while it runs.

    name               the name by which it is found
    inputs, outputs    the number of channels
    rate_hz            its default sample rate
    rates_hz           all rates that it supports; any if None
    clock_ppm          how much faster its clock is than the host's, in parts per million
    input_latency_s    time from the first sample of a block until the callback, as the device reports it
    output_latency_s   time from the callback until the first sample of the block is played
    jitter_s           the greatest delay of its callbacks, which is random
    present            False: it is unplugged, is not found, and does not call
    stalled            True: it does not call, and reports nothing
    hangs              True: it cannot be stopped within any limit
    in_callback        True: its last call has not returned either
    refuses            why it cannot be opened; None if it can
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


class VirtualStream(NotCopyable, reason="it is open on one host; open another one"):
    """An open stream of a virtual device; see ``host.DeviceStream``."""

    note: str | None = None
    in_callback = False

    def __init__(self, host: VirtualClockHost, request: StreamRequest, device: VirtualDevice) -> None:
        self.request, self.device = request, device
        self.input_latency_s, self.output_latency_s = device.input_latency_s, device.output_latency_s
        self._host = host
        self._call = DeviceCall(request)
        self._control = control_at(request.user_address)
        self._running = False
        self.restart_clock()

    def start(self) -> None:
        """Start the callbacks."""
        self._running = True
        self.restart_clock()

    def restart_clock(self) -> None:
        """Let the next block begin now."""
        self._begun_ns, self._frames = self._host.now_ns(), 0

    def stop(self, limit_s: float) -> bool:
        """Stop the callbacks. If the device hangs, waits for the limit and returns False."""
        self._running = False
        self.in_callback = self.device.in_callback
        answers = not (self.device.hangs or self.in_callback)
        self._host.record_close(self, 0.0 if answers else limit_s)
        return answers

    @property
    def calls(self) -> bool:
        """Whether the device makes calls."""
        return self._running and self.device.present and not self.device.stalled

    def due_ns(self, frames: int) -> int:
        """Return the time at which the next block of this many frames is full."""
        rate_hz = self.request.rate_hz * (1 + self.device.clock_ppm / 1e6)
        return self._begun_ns + round((self._frames + frames) * SECOND_NS / rate_hz)

    def count_block(self, frames: int) -> None:
        """Count a block of this many frames as full."""
        self._frames += frames

    def call(self, captured: Samples | int, flags: int) -> Samples:
        """Call the callback and return what it plays. The stream ends if the callback asks for it."""
        now_s = self._host.now_ns() / SECOND_NS
        times_s = now_s - self.input_latency_s, now_s, now_s + self.output_latency_s
        played, answer = self._call(captured, flags, times_s)
        if answer:
            self.finish()
        return played

    def finish(self) -> None:
        """Make the device end by itself, and report it."""
        if self._running:
            self._running = False
            self.request.finished()

    def set_time(self, ns: int) -> None:
        """Set the time that the callback sees."""
        self._control.virtual_now_ns = ns
