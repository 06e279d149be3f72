"""Watchdog: detects devices that stall or end, and reopens them."""

import threading
from collections.abc import Callable

from pulse.errors import PulseError
from pulse.support.wording import count_of, spell
from streaming.errors import DeviceError
from streaming.live.control import Control
from streaming.live.pipeline import Pipeline
from streaming.live.plan import TEARDOWN_TIMEOUT_S, PlannedDevices
from streaming.native.control_block import LIMIT_REACHED, WAS_LATE

SUPERVISION_PERIOD_S = 0.1
"""The seconds between two checks."""
STALL_TIMEOUT_S = 1.0
"""A device without a callback for this many seconds, or three blocks, counts as lost."""
RETRY_S = 0.5
"""The seconds between two attempts to open a lost device, at first."""
FREQUENT_RETRIES_S = 60.0
"""A device that is absent for this many seconds is tried less often, as each try costs the audio system memory."""
RARE_RETRY_S = 10.0
"""The seconds between two attempts from then on."""
LATE_ADVICE = "larger blocks or more headroom give it time, another policy continues with silence"
MAX_EVENTS = 100
"""Maximum number of events; beyond it, the oldest ones are dropped."""


def stall_s(block_frames: int, rate_hz: int) -> float:
    """Return the seconds without a callback after which a device counts as disconnected: at least three blocks."""
    return max(STALL_TIMEOUT_S, 3 * block_frames / rate_hz)


class Watchdog:
    """Watches the counters of a pipeline.

    devices    the planned devices
    control    the pipeline's control
    reconnect  None, ``keep`` or ``reset``; see ``Live``
    now_s      a function that returns the time in seconds
    """

    def __init__(
        self,
        pipeline: Pipeline,
        devices: PlannedDevices,
        control: Control,
        reconnect: str | None,
        now_s: Callable[[], float],
    ) -> None:
        self.error: Exception | None = None
        self.stalls = 0
        self.reopened = 0
        self.events: tuple[str, ...] = ()
        """The latest events, each with the seconds since the start."""
        self._pipeline, self._devices, self._control = pipeline, devices, control
        self._reconnect, self._now_s = reconnect, now_s
        self._started_s = now_s()
        self._ended = threading.Event()
        self._callbacks = self._activity()
        self._seen_s = self._started_s
        self._gone_s = self._retry_s = 0.0
        self._device_lost = False
        self._called = True
        """Whether the device has made a call since it was opened."""
        self._reason = ""
        self._computing = False
        self._finished = False
        self._failure: Exception | None = None
        self.limit_s = stall_s(pipeline.stream_config.block_frames, pipeline.stream_config.rate_in_hz)

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended by itself; ``error`` says why."""
        return self._ended.is_set()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end of the run, at most this long. Returns whether it has ended."""
        return self._ended.wait(seconds)

    def record_end(self, error: Exception | None = None) -> None:
        """Record that a device has ended by itself, perhaps with an error. May be called from any thread."""
        self._failure, self._finished = error, True

    def start(self) -> None:
        """Start watching; called when the devices are open."""
        self._callbacks, self._seen_s = self._activity(), self._now_s()

    def close(self) -> None:
        """Stop watching; called when the devices are closed. An error until then ends the run, too."""
        if self._failure is not None:
            self.end(self._failure)

    def check(self) -> None:
        """Check everything once; called every ``SUPERVISION_PERIOD_S`` seconds."""
        if self.has_ended:
            return
        status = self._pipeline.control_block.status
        if status == WAS_LATE:
            self.end(PulseError(f"a block was not ready in time, and the policy is abort; {LATE_ADVICE}"))
        elif status == LIMIT_REACHED:
            limit = self._pipeline.program.limit
            self.end(
                PulseError(
                    f"the model has reached its limit of {count_of(limit, 'frame')}; reset it earlier, or "
                    "convert it for more"
                )
            )
        elif self._devices.in_callback:
            self.end(
                DeviceError(
                    f"{self._devices.source.name}: the device was told to stop and has not returned from a block, so "
                    "no other may be opened; start this program again"
                )
            )
        elif self._device_lost:
            self._reopen()
        else:
            self._check_device()

    def end(self, error: Exception | None) -> None:
        """End the run."""
        self.error = self.error or error
        self._ended.set()

    def _check_device(self) -> None:
        callbacks, now_s = self._activity(), self._now_s()
        if all(new != old for new, old in zip(callbacks, self._callbacks)):
            self._callbacks, self._seen_s, self._called = callbacks, now_s, True
        if self._devices.may_end:
            if self._finished:
                self.end(self._failure)
        elif self._finished:
            self._handle_loss("ended by itself")
        elif now_s - self._seen_s >= self.limit_s:
            self._handle_loss(f"has not called for {now_s - self._seen_s:.1f} s")

    def _handle_loss(self, problem: str) -> None:
        """Handle the loss of a device: end the run, or try to reopen the device."""
        self.stalls += 1
        self._note(f"the device {problem}")
        if self._reconnect is None:  # reported before the device is stopped, which may take long
            name, advice = self._devices.source.name, spell("reconnect")
            self.end(
                DeviceError(
                    f"{name}: the device {problem}; is it unplugged, or its server down? {advice} opens it again "
                    "when it is back"
                )
            )
        if not self._devices.stop(TEARDOWN_TIMEOUT_S):
            self._note("it does not respond; abandoned")
        if self._devices.in_callback:  # the callback may be computing: a command would wait for it in vain
            return
        self._computing = self._control.running
        self._control.running = self._computing and self._pipeline.engine_config.engine == "worker"
        if self._reconnect is None:
            return
        self._device_lost, self._reason = True, ""
        if self._called:
            self._called, self._gone_s = False, self._now_s()
            self._retry_s = self._gone_s
        if self._reconnect == "reset":
            try:
                self._control.reset()
            except PulseError as error:
                self._note(f"not reset: {error}")

    def _reopen(self) -> None:
        now_s = self._now_s()
        if now_s < self._retry_s:
            return
        self._retry_s = now_s + (RETRY_S if now_s - self._gone_s < FREQUENT_RETRIES_S else RARE_RETRY_S)
        self._finished = False
        waiting = self._control.running
        try:
            self._control.restart()
            self._control.running = self._computing  # before a callback may compute during a command
            self._devices.reopen(self._pipeline, self.record_end)
        except PulseError as error:
            self._control.running = waiting
            if str(error) != self._reason:
                self._reason = str(error)
                self._note(f"not opened yet: {error}")
            return
        self._device_lost = False
        self.reopened += 1
        self.start()
        self._note("opened again")

    def _activity(self) -> tuple[int, ...]:
        control = self._pipeline.control_block
        first = control.input_side.callbacks
        return (first, control.output_side.callbacks) if self._pipeline.stream_config.two_clocks else (first,)

    def _note(self, text: str) -> None:
        self.events = (*self.events, f"{self._now_s() - self._started_s:.1f} s: {text}")[-MAX_EVENTS:]
