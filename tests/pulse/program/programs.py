"""Programs of every kind for tests of pickles, copies and interruptions, compiled once."""

from functools import cache

import numpy as np

from pulse.facts import Array
from pulse.models import PulsedModel, TypedModel
from pulse.ops.matmul import MatMul
from pulse.ops.spectral import dft_matrix
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.program.streams.state import State
from pulse.rounding import Rounding
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.custom_ops import Doubled, Total

PULSE = 4
FORMS = [("numba", "f32"), ("numba", "bf16"), ("numba", "int8"), ("numpy", "f32"), ("numpy", "int8")]
"""Backend and weights of the tested programs."""
MODELS = ["windows", "matrix", "transform", "foreign", "limited", "constant"]


def windows() -> TypedModel:
    """Delays, a prefix, ends, a mirror; a second output of half the rate."""
    builder = ModelBuilder(x="1,2,T")
    causal = builder.conv(builder.pad(builder["x"], (4, 0), fill=0.5), 3, dilation=2, name="causal")
    same = builder.conv(builder.apply("tanh", causal), 3, (1, 1), name="same")
    low = builder.conv(builder.pad(same, (2, 1), "reflect"), 4, stride=2, name="low")
    return builder.model(builder.apply("add", same, causal, name="total"), low)


def matrix() -> TypedModel:
    """A product large enough for bf16 and int8, over a filter that remembers."""
    builder = ModelBuilder(x="1,T,48")
    w = builder.constant(builder.taps(48, 48), "w")
    return builder.model(builder.add("cut", MatMul(), builder["x"], w))


def transform() -> TypedModel:
    """A Fourier transform of 64 points."""
    builder = ModelBuilder(x="1,T,64")
    basis = dft_matrix(64, 1, 64, 33, False).transpose(1, 0, 3, 2).reshape(64, 66).astype(np.float32)
    return builder.model(builder.add("spectrum", MatMul(), builder["x"], builder.constant(basis, "basis")))


def foreign() -> TypedModel:
    """An operation from outside the package, after a filter."""
    builder = ModelBuilder(x="1,2,T")
    return builder.model(builder.add("doubled", Doubled(), builder.conv(builder["x"], 3, (2, 0))))


def limited_length() -> TypedModel:
    """A stream of at most 40 frames."""
    builder = ModelBuilder(x="1,2,T")
    builder.scope.assume("T <= 40")
    return builder.model(builder.conv(builder["x"], 3, (1, 1)))


def constant() -> TypedModel:
    """An input that does not stream."""
    builder = ModelBuilder(x="1,2,T", gain="1,2,1")
    return builder.model(builder.apply("mul", builder.conv(builder["x"], 3, (1, 1)), builder["gain"]))


def failing_filter() -> TypedModel:
    """A filter, and an operation that may raise TooLoudError; of the numpy backend only."""
    builder = ModelBuilder(x="1,2,T")
    return builder.model(
        builder.apply("tanh", builder.add("total", Total(), builder.conv(builder["x"], 3, (2, 0))))
    )


MAKERS = {
    "windows": windows,
    "matrix": matrix,
    "transform": transform,
    "foreign": foreign,
    "limited": limited_length,
    "constant": constant,
    "failing": failing_filter,
}


@cache
def pulsed_model(name: str) -> PulsedModel:
    return MAKERS[name]().pulsify(None, PULSE)


@cache
def program(name: str, backend: str = "numba", form: str = "f32") -> Program:
    """A program, the same each time."""
    return compile_model(pulsed_model(name), backend, Rounding(form))


def constants(program: Program, seed: int = 0) -> dict[str, Array]:
    """Values of the inputs that do not stream."""
    rng = np.random.default_rng(seed)
    return {
        port.name: rng.standard_normal(port.shape).astype(port.dtype)
        for port in program.inputs
        if not port.streams
    }


def block(program: Program, frames: int, seed: int = 0) -> Array:
    """Frames of the one input that streams."""
    (port,) = (port for port in program.inputs if port.streams)
    shape = [frames if axis == port.axis else size for axis, size in enumerate(port.shape)]
    return np.random.default_rng(seed).standard_normal(shape).astype(port.dtype)


def spawn_and_step(program: Program, pulses: int = 3) -> State:
    """A stream that is under way."""
    state = program.spawn(constants(program))
    for number in range(pulses):
        state.step(block(program, program.pulse, number))
    return state


def are_bit_identical(left: dict[str, Array], right: dict[str, Array]) -> bool:
    return left.keys() == right.keys() and all(
        left[name].shape == right[name].shape and left[name].tobytes() == right[name].tobytes()
        for name in left
    )
