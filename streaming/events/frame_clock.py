"""FrameClock: the time of an output's frame in the audio, and when the frame is known."""

from fractions import Fraction
from math import ceil

from pulse.errors import InputError
from pulse.interface import Port
from pulse.support.record import record

ROUNDING_FRAMES = 1e-6
"""Seconds that differ from an integer number of frames by at most this part of a frame are rounded to it."""


@record
class FrameClock:
    """The times of the frames of one output.

    rate_hz       frames per second
    delay_frames  leading frames of the output that are removed as delay
    pulse_frames  frames of the output in a pulse
    Raises        InputError: an invalid rate
    """

    rate_hz: Fraction
    delay_frames: int = 0
    pulse_frames: int = 1

    def __post_init__(self) -> None:
        if not self.rate_hz > 0:
            raise InputError(f"rate_hz={float(self.rate_hz):g}: must be more than 0 frames per second")

    @classmethod
    def of(cls, clock: "FrameClock | float") -> "FrameClock":
        """Return a clock, given one or frames per second. Raises InputError: not a positive number."""
        if isinstance(clock, FrameClock):
            return clock
        try:
            return cls(Fraction(clock))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"rate_hz={clock}: must be a number of frames per second") from None

    @classmethod
    def of_port(cls, port: Port, rate_hz: float) -> "FrameClock":
        """Return the clock of an output; ``rate_hz`` is in frames of the symbol.

        Raises InputError: the output does not stream
        """
        if not port.streams:
            raise InputError(f"{port.name}: has no time axis, so no events; choose another output")
        return cls(Fraction(rate_hz) * Fraction(port.rate), port.delay, port.frames)

    def time_s(self, frame: Fraction | int) -> float:
        """Return the time at which a frame begins in the audio, without the delay."""
        return float(Fraction(frame) / self.rate_hz)

    def known_s(self, frame: int) -> float:
        """Return the length of audio that a stream has received when it returns this frame; frames count from 0."""
        pulses = -(-(frame + 1 + self.delay_frames) // self.pulse_frames)
        return float(Fraction(pulses * self.pulse_frames) / self.rate_hz)

    def frames(self, seconds: float) -> int:
        """Return the smallest number of frames, at least one, that lasts this long."""
        return max(1, ceil(seconds * float(self.rate_hz) - ROUNDING_FRAMES))
