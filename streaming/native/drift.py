# pyright: basic
"""Two devices have two clocks: the ratio of the last resampler follows how long a frame is in the pipeline."""

from pulse.jit.pointer import Pointer
from pulse.jit.registry import device

DELAY, INTEGRAL, TARGET = range(3)
"""Float64 of a controller: frames that are in the pipeline, smoothed; what has been found of the drift, as a part;
frames that there should be."""
SMOOTHING_S = 2.0
PROPORTIONAL = 0.05
"""Of the ratio, for each second that the delay is too long."""
INTEGRATING = PROPORTIONAL * PROPORTIONAL / 4
MOST = 0.003


@device
def rate_correction(state: Pointer, delay: float, frames: int, rate: int) -> float:
    """By how much the output is to have fewer frames, as a part of all; called once ``frames`` were written."""
    elapsed = frames / rate
    state[DELAY] = state[DELAY] + (delay - state[DELAY]) * min(elapsed / SMOOTHING_S, 1.0)
    error = (state[DELAY] - state[TARGET]) / rate
    integral = state[INTEGRAL] + INTEGRATING * error * elapsed
    state[INTEGRAL] = min(max(integral, -MOST), MOST)
    return min(max(PROPORTIONAL * error + state[INTEGRAL], -MOST), MOST)
