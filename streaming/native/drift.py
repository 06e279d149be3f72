# pyright: basic
"""Two devices have two clocks: the ratio of the last resampler follows how full the ring of output is."""

from pulse.program.kernels.pointer import Pointer
from pulse.program.kernels.registry import device

LEVEL, INTEGRAL, TARGET = range(3)
"""Float64 of a controller: frames in the ring, smoothed; what has been found of the drift; frames that should be."""
SMOOTHING_S = 2.0
PROPORTIONAL = 0.05
"""Of the ratio, for each second that the ring is too full."""
INTEGRATING = PROPORTIONAL * PROPORTIONAL / 4
MOST = 0.003


@device
def corrected(state: Pointer, level: int, frames: int, rate: int) -> float:
    """By how much the output is to have fewer frames, as a part of all; called once ``frames`` were written."""
    elapsed = frames / rate
    state[LEVEL] = state[LEVEL] + (level - state[LEVEL]) * min(elapsed / SMOOTHING_S, 1.0)
    error = (state[LEVEL] - state[TARGET]) / rate
    integral = state[INTEGRAL] + INTEGRATING * error * elapsed
    state[INTEGRAL] = min(max(integral, -MOST), MOST)
    return min(max(PROPORTIONAL * error + state[INTEGRAL], -MOST), MOST)
