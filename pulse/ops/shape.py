"""Changes of shape: reshape, transpose, axes added and removed, broadcast and repeat."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, Shape, TypedFact, cancel_sizes, shape_text, volume
from pulse.ops.dims import broadcast_shapes, dims_value, unify
from pulse.ops.op import Env, Op, Pointwise, Positional, Relation, Whole, Window
from pulse.support.record import record

INFERRED = -1
"""The entry of a target shape that is inferred from the others."""


def single_quotient(total: TDim, part: TDim) -> TDim | None:
    """Return ``total / part`` if it is a constant, or if part is one."""
    if part.is_const:
        size = int(part)
        quotient = total // size if size > 0 else None
        return quotient if quotient is not None and quotient * size == total else None
    symbol = min(part.symbols, key=lambda symbol: symbol.name)
    if symbol not in total.symbols:
        return None
    ratio = total.slope(symbol) / part.slope(symbol) if part.slope(symbol) else None
    if ratio is None or ratio.denominator != 1 or part * ratio.numerator != total:
        return None
    return TDim.of(ratio.numerator)


def exact_quotient(sizes: Sequence[TDim], parts: Sequence[TDim], subject: str) -> TDim:
    """Return the product of ``sizes`` over the product of ``parts``, which must divide without a remainder.

    If that depends on a length, it becomes an assumption of the scope. Raises FactError: it does not divide.
    """
    over, under = cancel_sizes(sizes, parts)
    total, part = volume(over), volume(under)
    if part == 1:
        return total
    answer = single_quotient(total, part)
    if answer is not None:
        return answer
    if not part.is_const or int(part) <= 0:
        raise FactError(f"{subject}: {total} elements do not divide by {part}")
    quotient = total // int(part)
    unify(quotient * int(part), total, f"{subject}: {total} elements do not divide by {part}")
    return quotient


def resolve_shape(shape: Shape, target: Shape) -> Shape:
    """Return a target shape with its one -1 inferred from the others. Raises FactError: several, or none that fits."""
    holes = [axis for axis, dim in enumerate(target) if dim == INFERRED]
    if len(holes) > 1:
        raise FactError(f"{shape_text(target)} leaves more than one dim open")
    subject = f"reshape {shape_text(shape)} to {shape_text(target)}"
    if not holes:
        unify(volume(shape), volume(target), subject)
        return target
    (hole,) = holes
    dim = exact_quotient(shape, [*target[:hole], *target[hole + 1 :]], subject)
    return (*target[:hole], dim, *target[hole + 1 :])


def _without_ones(shape: Shape, start: int, end: int) -> list[int]:
    return [axis for axis in range(start, end) if shape[axis] != 1]


def _group(shape: Shape, target: Shape, axis: int) -> tuple[list[int], list[int]]:
    """Return the axes that ``axis`` is mixed with and those of the target that hold them, without sizes of 1."""
    before = [volume(target[:j]) for j in range(len(target))]
    fronts = [(i, j) for i in range(axis + 1) for j, size in enumerate(before) if size == volume(shape[:i])]
    front, target_front = max(fronts, default=(0, 0))
    volumes_after = [(j, volume(target[j:])) for j in range(target_front + 1, len(target) + 1)]
    backs = [
        (i, j)
        for i in range(axis + 1, len(shape) + 1)
        for j, size in volumes_after
        if size == volume(shape[i:])
    ]
    back, target_back = min(backs, default=(len(shape), len(target)))
    return _without_ones(shape, front, back), _without_ones(target, target_front, target_back)


@record
class Reshape(Op):
    """The same elements in another shape, in row-major order.

    Input    x [X...]
    Output   y [shape...]; one entry of ``shape`` may be -1: inferred from the others
    Stream   pointwise if the stream axis stays alone; window if it is the outermost of axes that are
             merged or split; whole where frames interleave
    Raises   FactError: another number of elements
    Source   ONNX Reshape-21, Flatten-21
    """

    shape: tuple[TDim, ...]
    symbolic = copies = keeps_values = keeps_order = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        return [TypedFact(x.dtype, resolve_shape(x.shape, self.shape))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [inputs[0].reshape(dims_value(self.shape, env))]

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        return 0

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis, shape = axes[0], inputs[0].shape
        assert axis is not None
        target = resolve_shape(shape, self.shape)
        source_axes, target_axes = _group(shape, target, axis)
        moving = [other for other in target_axes if not target[other].is_const]
        if not source_axes or source_axes[0] != axis or not target_axes or target_axes[:1] != moving:
            return Whole(
                f"reshaping {shape_text(shape)} to {shape_text(target)} interleaves frames of the whole stream",
                "keep time the outermost of the axes that are merged or split: transpose first",
            )
        if any(not shape[other].is_const for other in source_axes[1:]):
            return Whole(f"it merges two symbolic axes of {shape_text(shape)}", "fix all dims but time")
        target_axis = target_axes[0]
        inner = math.prod(int(shape[other]) for other in source_axes[1:])
        outer = math.prod(int(target[other]) for other in target_axes[1:])
        if not inner or not outer:
            return Whole("its frames are empty", "remove the axis of size 0")
        if inner == outer:
            return Pointwise((target_axis,), lambda frames: Reshape(with_dim(target, target_axis, frames)))
        common = math.lcm(inner, outer)
        span = common // inner
        op = Reshape(with_dim(target, target_axis, INFERRED))
        return Window(target_axis, span=span, stride=span, up=common // outer, op=op)

    def detail(self) -> str:
        return shape_text(self.shape)


def with_dim(shape: Shape, axis: int, dim: TDim | int) -> Shape:
    """Return a shape with one dim replaced."""
    return (*shape[:axis], TDim.of(dim), *shape[axis + 1 :])


def matrix_transpose(rank: int) -> tuple[int, ...]:
    """Return the order of axes that swaps the last two."""
    return (*range(rank - 2), rank - 1, rank - 2)


@record
class Transpose(Op):
    """Axes in another order: axis i of the output is axis ``perm[i]`` of the input.

    Stream   pointwise
    Raises   FactError: ``perm`` does not name each axis once
    Source   ONNX Transpose-21
    """

    perm: tuple[int, ...]
    symbolic = copies = keeps_values = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if sorted(self.perm) != list(range(x.rank)):
            raise FactError(f"perm {list(self.perm)} does not name each of {x.rank} axes once")
        return [TypedFact(x.dtype, tuple(x.shape[axis] for axis in self.perm))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [inputs[0].transpose(self.perm)]

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        moving = [axis for axis in self.perm if inputs[0].shape[axis] != 1]
        return 0 if moving == sorted(moving) else None

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        return Pointwise((self.perm.index(axis),))

    def detail(self) -> str:
        return f"perm {list(self.perm)}"


@record
class AddAxis(Op):
    """A new axis of size 1; ``axis`` counts in the output.

    Stream   pointwise
    Raises   FactError: the axis is out of range
    Source   ONNX Unsqueeze-21
    """

    axis: int
    symbolic = copies = keeps_values = keeps_order = True
    detail_format = "axis {axis}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if not 0 <= self.axis <= x.rank:
            raise FactError(f"cannot add axis {self.axis} to rank {x.rank}")
        return [TypedFact(x.dtype, (*x.shape[: self.axis], TDim.of(1), *x.shape[self.axis :]))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [np.expand_dims(inputs[0], self.axis)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        return Pointwise((axis + (axis >= self.axis),))


@record
class RemoveAxis(Op):
    """Remove an axis of size 1.

    Stream   pointwise
    Raises   FactError: the axis is not of size 1
    Source   ONNX Squeeze-21
    """

    axis: int
    symbolic = copies = keeps_values = keeps_order = True
    detail_format = "axis {axis}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if not 0 <= self.axis < x.rank:
            raise FactError(f"cannot remove axis {self.axis} of rank {x.rank}")
        unify(x.shape[self.axis], TDim.of(1), f"only an axis of size 1 can be removed, axis {self.axis}")
        return [x.without_axis(self.axis)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [np.squeeze(inputs[0], self.axis)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        if axis == self.axis:
            return Whole("it removes the time axis", "keep the time axis")
        return Pointwise((axis - (axis > self.axis),))


@record
class Expand(Op):
    """Broadcast to a shape, both ways as numpy does.

    Input    x [X...]
    Output   y of the shape that x and ``shape`` broadcast to
    Stream   pointwise; positional (and constant) if the stream axis comes from ``shape`` alone
    Raises   FactError: the shapes do not broadcast
    Source   ONNX Expand-13
    """

    shape: tuple[TDim, ...]
    symbolic = copies = keeps_values = positional = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        return [TypedFact(x.dtype, broadcast_shapes([x.shape, self.shape], "expand"))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        shape = np.broadcast_shapes(x.shape, dims_value(self.shape, env))
        return [np.ascontiguousarray(np.broadcast_to(x, shape))]

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        return 0

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        target = self.facts(inputs)[0].shape
        axis = axes[0]
        if axis is not None:
            result_axis = axis + len(target) - inputs[0].rank
            return Pointwise((result_axis,), lambda frames: Expand(with_dim(target, result_axis, frames)))
        result_axis = first_symbolic(target)
        return Positional(
            result_axis,
            target[result_axis],
            lambda offset, frames: Expand(with_dim(target, result_axis, frames)),
        )

    def detail(self) -> str:
        return shape_text(self.shape)


def first_symbolic(shape: Shape) -> int:
    """Return the first axis whose length is not a number. Raises FactError: there is none."""
    for axis, dim in enumerate(shape):
        if not dim.is_const:
            return axis
    raise FactError(f"{shape_text(shape)} has no symbolic axis")


@record
class Tile(Op):
    """Repeat the whole tensor along each axis.

    Input    x [X...]
    Output   y [X*repeats ...]
    Stream   pointwise on an axis that is not repeated; positional if one frame is repeated as often as
             the stream is long; whole if the stream itself is repeated
    Raises   FactError: not one number for each axis
    Source   ONNX Tile-13
    """

    repeats: tuple[TDim, ...]
    symbolic = copies = keeps_values = positional = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if len(self.repeats) != x.rank:
            raise FactError(f"{len(self.repeats)} repeats for rank {x.rank}")
        return [TypedFact(x.dtype, tuple(dim * times for dim, times in zip(x.shape, self.repeats)))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [np.tile(inputs[0], dims_value(self.repeats, env))]

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        return 0 if all(times == 1 for times in self.repeats) else None

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        (x,) = inputs
        axis = axes[0]
        if axis is not None and self.repeats[axis] != 1:
            return Whole("repeating a stream needs all of it before the second round", "repeat another axis")
        if axis is not None:
            return Pointwise((axis,))
        repeated_axis = first_symbolic(self.repeats)
        if x.shape[repeated_axis] != 1:
            return Whole(
                f"{x.shape[repeated_axis]} frames are repeated along the stream", "repeat a single frame"
            )
        return Positional(
            repeated_axis,
            self.repeats[repeated_axis],
            lambda offset, frames: replace(self, repeats=with_dim(self.repeats, repeated_axis, frames)),
        )

    def detail(self) -> str:
        return shape_text(self.repeats)
