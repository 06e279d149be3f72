"""VirtualWorker: computes the pulses of a pipeline on a virtual clock, in a time that a test sets."""

import ctypes

from pulse.support.not_copyable import NotCopyable
from streaming.live.pipeline import Pipeline
from streaming.live.virtual_clock import VirtualClockHost
from streaming.native.pulse_loop import pump

_PUMP = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class VirtualWorker(NotCopyable, reason="it belongs to one pipeline; make another one"):
    """Computes the pulses of a pipeline, or has the callback do so, each in ``clock.compute_s``.

    due_ns  the time of the next ``step``; None while it waits for a block
    """

    def __init__(self, pipeline: Pipeline, clock: VirtualClockHost) -> None:
        self.due_ns: int | None = None
        self._pipeline, self._clock = pipeline, clock
        self._free_ns = 0
        self._in_flight = False
        self._slow_pump = _PUMP(self._pump)
        self._slow_address = ctypes.cast(self._slow_pump, ctypes.c_void_p).value or 0

    def stall(self, ns: int) -> None:
        """Stop computing for this time from now on; the pulse in progress finishes that much later."""
        self._free_ns = max(self._free_ns, self._clock.now_ns()) + ns
        if self.due_ns is not None:
            self.due_ns = self.due_ns + ns if self._in_flight else max(self.due_ns, self._free_ns)

    def prepare_callback(self) -> None:
        """Prepare for a callback: if the callback computes, it takes ``clock.compute_s``."""
        slow = self._clock.compute_s > 0 or self._free_ns > self._clock.now_ns()
        self._pipeline.control_block.pump = self._slow_address if slow else pump.address

    def finish_callback(self) -> None:
        """Look for a block after a callback."""
        if self._pipeline.engine_config.engine == "worker" and self.due_ns is None:
            self.due_ns = max(self._clock.now_ns(), self._free_ns)

    def step(self) -> None:
        """Finish the pulse in flight and start the next; called at ``due_ns``."""
        if self._in_flight:
            self._in_flight = False
            self._pipeline.run_pulse()
        now_ns = self._clock.now_ns()
        if self._free_ns > now_ns:
            self.due_ns = self._free_ns
        elif self._clock.compute_s > 0 and self._pipeline.take_pulse():
            self._in_flight = True
            self.due_ns = now_ns + round(self._clock.compute_s * 1e9)
        else:
            self._pipeline.pump()
            self.due_ns = None

    def _pump(self, address: int) -> None:
        """Run all complete pulses for a callback that computes."""
        self._clock.set_ns(max(self._free_ns, self._clock.now_ns()))
        while self._pipeline.take_pulse():
            self._clock.set_ns(self._clock.now_ns() + round(self._clock.compute_s * 1e9))
            self._pipeline.run_pulse()
