"""Clock: at what time of the sound a frame of an output is, and when it is known."""

from fractions import Fraction
from math import ceil

from pulse.errors import InputError
from pulse.interface import Port
from pulse.support.record import record

NEAR = 1e-6
"""The part of a frame by which seconds may differ from a whole number of frames and still mean it."""


@record
class FrameClock:
    """The times of the frames of one output.

    rate_hz       frames a second
    delay_frames  frames of the output that a stream gives before its first one; they are cut off
    pulse_frames  frames of the output that a stream gives at once
    Raises        InputError: no rate
    """

    rate_hz: Fraction
    delay_frames: int = 0
    pulse_frames: int = 1

    def __post_init__(self) -> None:
        if not self.rate_hz > 0:
            raise InputError(f"rate_hz={float(self.rate_hz):g}: must be more than 0 frames a second")

    @classmethod
    def of(cls, clock: "FrameClock | float") -> "FrameClock":
        """A clock, or frames a second. Raises InputError."""
        if isinstance(clock, FrameClock):
            return clock
        try:
            return cls(Fraction(clock))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"rate_hz={clock}: must be a number of frames a second") from None

    @classmethod
    def of_port(cls, port: Port, rate_hz: float) -> "FrameClock":
        """The clock of an output; ``rate_hz`` is in frames of the symbol. Raises InputError."""
        if not port.streams:
            raise InputError(f"{port.name}: has no frames in time, so no events; choose another output")
        return cls(Fraction(rate_hz) * Fraction(port.rate), port.delay, port.frames)

    def time_s(self, frame: Fraction | int) -> float:
        """The time at which a frame begins in the sound, without the delay."""
        return float(Fraction(frame) / self.rate_hz)

    def known_s(self, frame: int) -> float:
        """The length of sound that a stream has received when it gives this frame; frames count from 0."""
        pulses = -(-(frame + 1 + self.delay_frames) // self.pulse_frames)
        return float(Fraction(pulses * self.pulse_frames) / self.rate_hz)

    def frames(self, seconds: float) -> int:
        """The least whole number of frames that lasts this long, and at least one."""
        return max(1, ceil(seconds * float(self.rate_hz) - NEAR))
