# pyright: basic
"""Two devices have two clocks: the ratio of the last resampler follows how long a frame is in the pipeline."""

from pulse.jit.registry import device
from pulse.jit.structs import Struct, struct_at

SMOOTHING_S = 2.0
PROPORTIONAL = 0.05
"""Change of the ratio for each second by which the delay is too long."""
INTEGRATING = PROPORTIONAL * PROPORTIONAL / 4
MOST = 0.003


class Drift(Struct):
    """The state of a controller."""

    delay: float  # frames that are in the pipeline, smoothed
    integral: float  # what has been found of the drift, as a part
    target: float  # frames that there should be


drift_at = struct_at(Drift)


@device
def rate_correction(state: Drift, delay: float, frames: int, rate: int) -> float:
    """By how much the output is to have fewer frames, as a part of all; called once ``frames`` were written."""
    elapsed = frames / rate
    state.delay += (delay - state.delay) * min(elapsed / SMOOTHING_S, 1.0)
    error = (state.delay - state.target) / rate
    integral = state.integral + INTEGRATING * error * elapsed
    state.integral = min(max(integral, -MOST), MOST)
    return min(max(PROPORTIONAL * error + state.integral, -MOST), MOST)
