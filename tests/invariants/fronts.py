"""Nodes between an input and an operator that move frames in time; few of them change values.

A convolution here picks one of its frames, so inputs keep the values that an operator takes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from pulse.facts import Array
from tests.pulse.cases.build import node


@dataclass
class FrontBuilder:
    """Nodes and constants under construction; ``wire`` is the newest output."""

    wire: str
    axis: int
    sample: Array
    nodes: list[NodeProto]
    constants: dict[str, Array]

    def add(self, op: str, operands: str, **attributes: object) -> None:
        """A node whose inputs are named by ``operands``, ``x`` being the newest wire."""
        inputs = " ".join(self.wire if operand == "x" else operand for operand in operands.split())
        name = f"{self.wire}.{op}"
        self.nodes.append(node(op, inputs, name, **attributes))
        self.wire = name

    def constant(self, value: Array) -> str:
        """The name of a tensor."""
        name = f"{self.wire}.constant{len(self.constants)}"
        self.constants[name] = value
        return name

    def join_constants(self, before: int = 0, behind: int = 0) -> None:
        """Constant frames, taken from the sample, before and after."""
        index = np.arange(before + behind) % self.sample.shape[self.axis]
        frames = np.take(self.sample, index, self.axis)
        head, tail = np.split(frames, [before], self.axis)
        parts = [self.constant(head)] * bool(before) + ["x"] + [self.constant(tail)] * bool(behind)
        self.add("Concat", " ".join(parts), axis=self.axis)

    def slice(self, start: int = 0, end: int = 1 << 40, step: int = 1) -> None:
        """``x[start:end:step]``, as of opset 10."""
        numbers = " ".join(self.constant(np.array([v])) for v in (start, end, self.axis, step))
        self.add("Slice", f"x {numbers}")

    def convolve(self, taps: Sequence[float], transposed: bool = False, **attributes: object) -> None:
        """A convolution of each channel along the axis, which is moved to the end for it."""
        rank = self.sample.ndim
        perm = [axis for axis in range(rank) if axis != self.axis] + [self.axis]
        sizes = [self.sample.shape[axis] for axis in perm[:-1]]
        channels = int(np.prod(sizes, dtype=int))
        weights = np.tile(np.array(taps, np.float32), (channels, 1, 1))
        plain = rank == 3 and self.axis == 2 and sizes[0] == 1
        if not plain:
            self.add("Transpose", "x", perm=perm)
            self.add("Reshape", f"x {self.constant(np.array([1, channels, -1]))}")
        op = "ConvTranspose" if transposed else "Conv"
        self.add(op, f"x {self.constant(weights)}", group=channels, **attributes)
        if not plain:
            self.add("Reshape", f"x {self.constant(np.array([*sizes, -1]))}")
            self.add("Transpose", "x", perm=[int(axis) for axis in np.argsort(perm)])


@dataclass(frozen=True)
class Front:
    """A way of moving frames.

    build   adds its nodes
    frames  of its output, for a number of those of its input
    floats  whether it needs finite f32 numbers: a convolution, whose taps of weight 0 need not read what they see
    """

    name: str
    build: Callable[[FrontBuilder], None]
    frames: Callable[[int], int] = lambda frames: frames
    floats: bool = False

    @property
    def keeps_length(self) -> bool:
        """Whether it gives as many frames as it takes."""
        return all(self.frames(frames) == frames for frames in range(20))

    def suits(self, array: Array) -> bool:
        """Whether it can come before such an input."""
        finite = array.dtype == np.float32 and bool(np.isfinite(array).all())
        return (finite or not self.floats) and array.size > 0

    def then(self, other: "Front") -> "Front":
        """Both, one after the other."""

        def build(model: FrontBuilder) -> None:
            self.build(model)
            other.build(model)

        return Front(
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
) -> Front:
    """A convolution of some taps."""
    return Front(
        name, lambda model: model.convolve(taps, pads=list(pads), strides=[stride]), frames, floats=True
    )


def piece(
    before: int = 0,
    start: int = 0,
    cut: int = 0,
    behind: int = 0,
    step: int = 1,
    frames: Callable[[int], int] = lambda frames: frames,
    name: str = "",
) -> Front:
    """Frames before and after, then a slice ``[start:-cut:step]`` of the result."""

    def build(model: FrontBuilder) -> None:
        if before or behind:
            model.join_constants(before, behind)
        if start or cut or step > 1:
            model.slice(start, -cut or 1 << 40, step)

    return Front(name, build, frames)


def double_frames(before: int = 0, start: int = 0, name: str = "") -> Front:
    """Each frame twice, after some leading ones, without the first ``start``."""

    def build(model: FrontBuilder) -> None:
        piece(before).build(model)
        model.convolve([1, 1], transposed=True, strides=[2])
        piece(start=start).build(model)

    return Front(name, build, lambda frames: max(0, 2 * (frames + before) - start), floats=True)


def fewer(count: int) -> Callable[[int], int]:
    """The number of frames without this many."""
    return lambda frames: max(0, frames - count)


FRONTS = (
    conv([0, 0, 1], (1, 1), name="padded convolution"),
    conv([1, 0, 0], (2, 0), name="causal convolution"),
    conv([0, 1, 0], (4, 0), frames=lambda n: n + 2, name="convolution with a prefix"),
    conv([0, 0, 1], (1, 1), 2, lambda n: (n + 1) // 2, "strided convolution"),
    piece(before=1, frames=lambda n: n + 1, name="prefix of one"),
    piece(before=3, frames=lambda n: n + 3, name="prefix"),
    piece(before=2, behind=1, frames=lambda n: n + 3, name="prefix and tail"),
    piece(before=2, cut=2, name="shifted"),
    piece(before=3, cut=5, frames=fewer(2), name="shifted and cut"),
    piece(before=5, step=2, frames=lambda n: (n + 6) // 2, name="prefix of a half"),
    piece(start=1, frames=fewer(1), name="late"),
    piece(start=1, behind=1, name="late, filled up"),
    piece(start=1, step=2, frames=lambda n: n // 2, name="every other"),
    piece(cut=2, frames=fewer(2), name="cut"),
    double_frames(name="doubled"),
    double_frames(start=1, name="doubled, late"),
    double_frames(before=1, name="doubled prefix"),
)


def raw(name: str) -> str:
    """The name of an input before its front."""
    return f"{name}.raw"


def opset_of(proto: ModelProto) -> int:
    """Whether it is in the default domain."""
    return next(entry.version for entry in proto.opset_import if entry.domain == "")


def join_fronts(
    proto: ModelProto, fronts: Mapping[str, Front], axes: Mapping[str, int], feeds: Mapping[str, Array]
) -> ModelProto:
    """The model with each of these fronts between an input, which is called ``raw(name)`` then, and its readers."""
    result = ModelProto()
    result.CopyFrom(proto)
    for name, front in fronts.items():
        model = FrontBuilder(raw(name), axes[name], feeds[name], [], {})
        front.build(model)
        model.nodes[-1].output[0] = name
        (declared,) = (value for value in result.graph.input if value.name == name)
        declared.name = raw(name)
        declared.type.tensor_type.ClearField("shape")
        graph_nodes = list(result.graph.node)
        del result.graph.node[:]
        result.graph.node.extend([*model.nodes, *graph_nodes])
        result.graph.initializer.extend(
            numpy_helper.from_array(value, key) for key, value in model.constants.items()
        )
    return result
