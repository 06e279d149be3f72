"""A model of everything that a stream can have, compiled for each backend, and recordings for it."""

import numpy as np

from pulse.facts import Array
from pulse.models import TypedModel
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from pulse.program.compiler import compile_model
from pulse.program.streams.state import State
from pulse.pulsify.driver import pulsify
from tests.backends import BACKENDS
from tests.pulse.model_builder import ModelBuilder

F = np.float32


def model_of_everything() -> TypedModel:
    """Delays, a prefix, ends, a position, a mirror, last frames; outputs of three rates."""
    builder = ModelBuilder(x="1,2,T")
    causal = builder.conv(builder.pad(builder["x"], (4, 0), fill=0.5), 3, dilation=2, name="causal")
    same = builder.conv(builder.apply("tanh", causal), 3, (1, 1), name="same")
    steps = builder.add("steps", Range(0.0, 0.25, builder.length(same), np.dtype(F)))
    total = builder.apply("add", builder.apply("add", same, steps, name="placed"), causal, name="total")
    mirrored = builder.pad(total, (2, 1), "reflect", name="mirrored")
    low = builder.conv(mirrored, 4, stride=2, name="low")
    length = builder.length(total)
    last = builder.add("last", Slice(2, length - 3, length), total)
    return builder.model(total, low, last)


TYPED = model_of_everything()
PULSE = 4
PROGRAMS = {backend: compile_model(pulsify(TYPED, pulse=PULSE), backend) for backend in BACKENDS}


def stereo_noise(frames: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((1, 2, frames)).astype(F)


def pulses_of(x: Array, pulse: int = PULSE) -> list[Array]:
    """Return the complete pulses of x."""
    return [x[..., start : start + pulse] for start in range(0, x.shape[-1] - pulse + 1, pulse)]


def play_whole(state: State, x: Array) -> list[dict[str, Array]]:
    """Play a recording to its end; returns the outputs of every pulse."""
    results = [state.step(part) for part in pulses_of(x)]
    rest = x[..., x.shape[-1] // PULSE * PULSE :]
    return results + state.flush(rest if rest.shape[-1] else None)
