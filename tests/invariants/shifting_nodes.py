"""Nodes between an input and an operator that shift frames in time; few of them change values.

A convolution here picks one of its frames, so inputs keep the values that an operator takes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from pulse.facts import Array
from tests.pulse.cases.build import node


@dataclass
class ShiftBuilder:
    """Nodes and constants under construction; ``wire`` is the newest output."""

    wire: str
    axis: int
    sample: Array
    nodes: list[NodeProto]
    constants: dict[str, Array]

    def add(self, op: str, operands: str, **attributes: object) -> None:
        """Add a node whose inputs are named by ``operands``, ``x`` being the newest wire."""
        inputs = " ".join(self.wire if operand == "x" else operand for operand in operands.split())
        name = f"{self.wire}.{op}"
        self.nodes.append(node(op, inputs, name, **attributes))
        self.wire = name

    def add_constant(self, value: Array) -> str:
        name = f"{self.wire}.constant{len(self.constants)}"
        self.constants[name] = value
        return name

    def join_constants(self, before: int = 0, after: int = 0) -> None:
        """Join constant frames, taken from the sample, before and after the wire."""
        index = np.arange(before + after) % self.sample.shape[self.axis]
        frames = np.take(self.sample, index, self.axis)
        head, tail = np.split(frames, [before], self.axis)
        parts = [self.add_constant(head)] * bool(before) + ["x"] + [self.add_constant(tail)] * bool(after)
        self.add("Concat", " ".join(parts), axis=self.axis)

    def slice(self, start: int = 0, end: int = 1 << 40, step: int = 1) -> None:
        """Add ``x[start:end:step]``, as in opset 10."""
        numbers = " ".join(self.add_constant(np.array([v])) for v in (start, end, self.axis, step))
        self.add("Slice", f"x {numbers}")

    def convolve(self, taps: Sequence[float], transposed: bool = False, **attributes: object) -> None:
        """Add a convolution of each channel along the axis, which is transposed to the end for it."""
        rank = self.sample.ndim
        perm = [axis for axis in range(rank) if axis != self.axis] + [self.axis]
        sizes = [self.sample.shape[axis] for axis in perm[:-1]]
        channels = int(np.prod(sizes, dtype=int))
        weights = np.tile(np.array(taps, np.float32), (channels, 1, 1))
        plain = rank == 3 and self.axis == 2 and sizes[0] == 1
        if not plain:
            self.add("Transpose", "x", perm=perm)
            self.add("Reshape", f"x {self.add_constant(np.array([1, channels, -1]))}")
        op = "ConvTranspose" if transposed else "Conv"
        self.add(op, f"x {self.add_constant(weights)}", group=channels, **attributes)
        if not plain:
            self.add("Reshape", f"x {self.add_constant(np.array([*sizes, -1]))}")
            self.add("Transpose", "x", perm=[int(axis) for axis in np.argsort(perm)])


@dataclass(frozen=True)
class Shift:
    """Nodes that shift frames in time.

    name    its name in failures
    build   function that adds the nodes
    frames  function from the number of input frames to that of output frames
    floats  whether it needs finite f32 numbers: in a convolution, 0 times infinity or NaN is NaN
    """

    name: str
    build: Callable[[ShiftBuilder], None]
    frames: Callable[[int], int] = lambda frames: frames
    floats: bool = False

    @property
    def keeps_length(self) -> bool:
        """Whether it outputs as many frames as it takes."""
        return all(self.frames(frames) == frames for frames in range(20))

    def suits(self, array: Array) -> bool:
        """Whether it can come before this input."""
        finite = array.dtype == np.float32 and bool(np.isfinite(array).all())
        return (finite or not self.floats) and array.size > 0

    def then(self, other: "Shift") -> "Shift":
        """A shift by this one, then by ``other``."""

        def build(model: ShiftBuilder) -> None:
            self.build(model)
            other.build(model)

        return Shift(
            f"{self.name}, {other.name}",
            build,
            lambda frames: other.frames(self.frames(frames)),
            self.floats or other.floats,
        )


def conv(
    taps: Sequence[float],
    pads: tuple[int, int],
    stride: int = 1,
    frames: Callable[[int], int] = lambda frames: frames,
    name: str = "",
) -> Shift:
    """A shift by a convolution."""
    return Shift(
        name, lambda model: model.convolve(taps, pads=list(pads), strides=[stride]), frames, floats=True
    )


def piece(
    before: int = 0,
    start: int = 0,
    cut: int = 0,
    after: int = 0,
    step: int = 1,
    frames: Callable[[int], int] = lambda frames: frames,
    name: str = "",
) -> Shift:
    """A shift by frames before and after, then a slice ``[start:-cut:step]`` of the result."""

    def build(model: ShiftBuilder) -> None:
        if before or after:
            model.join_constants(before, after)
        if start or cut or step > 1:
            model.slice(start, -cut or 1 << 40, step)

    return Shift(name, build, frames)


def double_frames(before: int = 0, start: int = 0, name: str = "") -> Shift:
    """A shift by ``before`` leading frames, then each frame twice without the first ``start``."""

    def build(model: ShiftBuilder) -> None:
        piece(before).build(model)
        model.convolve([1, 1], transposed=True, strides=[2])
        piece(start=start).build(model)

    return Shift(name, build, lambda frames: max(0, 2 * (frames + before) - start), floats=True)


def fewer(count: int) -> Callable[[int], int]:
    """A function that subtracts ``count`` from a number of frames."""
    return lambda frames: max(0, frames - count)


SHIFTS = (
    conv([0, 0, 1], (1, 1), name="padded convolution"),
    conv([1, 0, 0], (2, 0), name="causal convolution"),
    conv([0, 1, 0], (4, 0), frames=lambda n: n + 2, name="convolution with a prefix"),
    conv([0, 0, 1], (1, 1), 2, lambda n: (n + 1) // 2, "strided convolution"),
    piece(before=1, frames=lambda n: n + 1, name="prefix of one"),
    piece(before=3, frames=lambda n: n + 3, name="prefix"),
    piece(before=2, after=1, frames=lambda n: n + 3, name="prefix and tail"),
    piece(before=2, cut=2, name="shifted"),
    piece(before=3, cut=5, frames=fewer(2), name="shifted and cut"),
    piece(before=5, step=2, frames=lambda n: (n + 6) // 2, name="prefix of a half"),
    piece(start=1, frames=fewer(1), name="late"),
    piece(start=1, after=1, name="late, filled up"),
    piece(start=1, step=2, frames=lambda n: n // 2, name="every other"),
    piece(cut=2, frames=fewer(2), name="cut"),
    double_frames(name="doubled"),
    double_frames(start=1, name="doubled, late"),
    double_frames(before=1, name="doubled prefix"),
)


def source_name(name: str) -> str:
    """The name of an input before its shift."""
    return f"{name}.unshifted"


def opset_of(proto: ModelProto) -> int:
    """The version of the default domain."""
    return next(entry.version for entry in proto.opset_import if entry.domain == "")


def insert_shifts(
    proto: ModelProto, shifts: Mapping[str, Shift], axes: Mapping[str, int], feeds: Mapping[str, Array]
) -> ModelProto:
    """The model with each shift between an input, which is then called ``source_name(name)``, and its readers."""
    result = ModelProto()
    result.CopyFrom(proto)
    for name, shift in shifts.items():
        model = ShiftBuilder(source_name(name), axes[name], feeds[name], [], {})
        shift.build(model)
        model.nodes[-1].output[0] = name
        (declared,) = (value for value in result.graph.input if value.name == name)
        declared.name = source_name(name)
        declared.type.tensor_type.ClearField("shape")
        graph_nodes = list(result.graph.node)
        del result.graph.node[:]
        result.graph.node.extend([*model.nodes, *graph_nodes])
        result.graph.initializer.extend(
            numpy_helper.from_array(value, key) for key, value in model.constants.items()
        )
    return result
