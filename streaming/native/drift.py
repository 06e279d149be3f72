"""Compensation of clock drift between two devices: it tunes the last resampler by the delay of the pipeline."""

from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device

SMOOTHING_S = 2.0
"""The time constant of the smoothed delay."""
PROPORTIONAL_GAIN = 0.05
"""The change of the ratio per second of excess delay."""
INTEGRAL_GAIN = PROPORTIONAL_GAIN * PROPORTIONAL_GAIN / 4
MAX_DRIFT = 0.003
"""The greatest change of the ratio; the controller goes no further."""


class Drift(Struct):
    """The state of a controller.

    delay_frames   frames in the pipeline, smoothed
    integral       the estimated drift, as a fraction
    target_frames  the intended number of frames
    """

    delay_frames: float
    integral: float
    target_frames: float


drift_at = struct_at(Drift)


@device
def rate_correction(state: Drift, delay: float, frames: int, rate: int) -> float:
    """Update the controller after ``frames`` were written; return the fraction by which to shorten the output."""
    elapsed = frames / rate
    state.delay_frames += (delay - state.delay_frames) * min(elapsed / SMOOTHING_S, 1.0)
    error = (state.delay_frames - state.target_frames) / rate
    integral = state.integral + INTEGRAL_GAIN * error * elapsed
    state.integral = min(max(integral, -MAX_DRIFT), MAX_DRIFT)
    return min(max(PROPORTIONAL_GAIN * error + state.integral, -MAX_DRIFT), MAX_DRIFT)
