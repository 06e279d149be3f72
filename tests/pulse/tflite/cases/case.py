"""A model of one operator or few with its inputs, and the parts that such models have."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pulse.facts import Array
from tests.noise import next_noise
from tests.pulse.tflite.builder import SubgraphBuilder

SAME, VALID = 0, 1
RELU, RELU6 = 1, 3
X_SCALE, Y_SCALE = 0.05, 0.06
MOVED_TYPES = ("float32", "int8")
"""The types in which operators that only move elements are tried."""
RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


@dataclass
class TfliteCase:
    """A model, what each of its inputs may hold, and by how many steps a few of its 8-bit codes may differ."""

    name: str
    graph: SubgraphBuilder
    steps: int = 0

    def feeds(self, rng: np.random.Generator) -> list[Array]:
        """Return random inputs."""
        return [_values(rng, self.graph.tensors[number]) for number in self.graph.inputs]


def _values(rng: np.random.Generator, spec: Any) -> Array:
    shape = [max(size, 1) for size in spec.shape]
    if spec.kind in RANGE:
        low, high = RANGE[spec.kind]
        return rng.integers(low, high + 1, shape).astype(spec.kind)
    if spec.kind in ("int32", "int64"):
        return rng.integers(1, 5, shape).astype(spec.kind)
    if spec.kind == "bool":
        return rng.random(shape) < 0.5
    return next_noise(rng, *shape)


def codes(shape: tuple[int, ...], seed: int = 0, kind: str = "int8") -> Array:
    """Codes of weights that are the same in every run."""
    return np.random.default_rng(seed).integers(-127, 128, shape).astype(kind)


def case_of(name: str, graph: SubgraphBuilder, *outputs: int, steps: int = 0) -> TfliteCase:
    """A case whose outputs are given."""
    graph.outputs = list(outputs)
    return TfliteCase(name, graph, steps)


def weights(
    graph: SubgraphBuilder, shape: tuple[int, ...], channels: int | None, axis: int, seed: int = 0
) -> int:
    """Stored codes with one scale, or one for each channel."""
    count = channels or 1
    scale = (0.002 + 0.004 * np.random.default_rng(seed).random(count)).astype(np.float32)
    return graph.constant(codes(shape, seed), scale=scale, zero=[0] * count, axis=axis)


def bias(graph: SubgraphBuilder, x: int, w: int, size: int, kind: str = "int32") -> int:
    """Stored whole numbers, of the scale of the sums that they are added to."""
    scale = [np.float32(graph.tensors[x].scale[0]) * np.float32(factor) for factor in graph.tensors[w].scale]
    value = np.random.default_rng(5).integers(-2000, 2000, size).astype(kind)
    return graph.constant(value, scale=scale, zero=[0] * len(scale))


def scale_of_moved(dtype: str) -> tuple[float, int] | None:
    """The scale and the zero point of elements that are only moved; None: floats."""
    return None if dtype == "float32" else (X_SCALE, -7)


def _moved_fields(dtype: str) -> dict[str, Any]:
    scale = scale_of_moved(dtype)
    return {} if scale is None else {"scale": [scale[0]], "zero": [scale[1]]}


def moved_tensor(graph: SubgraphBuilder, shape: tuple[int, ...], dtype: str) -> int:
    """A tensor of elements that are only moved, in floats or codes."""
    return graph.tensor(shape, dtype, **_moved_fields(dtype))


def moved_input(graph: SubgraphBuilder, shape: tuple[int, ...], dtype: str, name: str = "x") -> int:
    """An input whose elements are only moved, in floats or codes."""
    return graph.input(shape, dtype, name=name, **_moved_fields(dtype))


def moved_case(
    dtype: str,
    kind: str,
    shape: tuple[int, ...],
    shape_out: tuple[int, ...],
    constants: list[Array],
    options: str,
    version: int | None = None,
    **fields: Any,
) -> TfliteCase:
    """A model of one operator that moves the elements of its first input; the others are constants."""
    graph = SubgraphBuilder()
    inputs = [moved_input(graph, shape, dtype), *map(graph.constant, constants)]
    if version is None:
        version = 1 if dtype == "float32" else 2
    y = graph.result(kind, inputs, shape_out, options, version, dtype, scale_of_moved(dtype), **fields)
    attributes = "".join(f" {name}={value}" for name, value in fields.items())
    return case_of(f"{dtype} {kind} of {shape} to {shape_out}{attributes}", graph, y)


def i32(*numbers: int) -> Array:
    """A vector of sizes or positions."""
    return np.array(numbers, np.int32)
