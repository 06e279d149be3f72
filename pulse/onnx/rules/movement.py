"""Operators that move axes, add them and take them away."""

from collections.abc import Iterator

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.fact import Dim
from pulse.infer.relations import (
    HasRank,
    HasSizes,
    Mapped,
    RankSum,
    Relation,
    SameRank,
    SameSize,
    SameType,
)
from pulse.infer.shapes import SameCount
from pulse.infer.wire_facts import Axis
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import rule

ONE = TDim.of(1)


@rule("Transpose")
def transpose(clues: Clues) -> Iterator[Relation]:
    """Axis i of y is axis perm[i] of x; the axes reversed where there is no perm."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    if "perm" in clues.attributes:
        yield HasRank([x, y], len(clues.integer_list("perm")))
    yield SameRank([x, y])
    rank = clues.rank(x)
    if rank is not None:
        order = clues.integer_list("perm", range(rank)[::-1])
        yield Mapped(y, x, [clues.axis(axis, rank) for axis in order])


@rule("Unsqueeze", parts=(0,))
def unsqueeze(clues: Clues) -> Iterator[Relation]:
    """New axes of size 1, which count in the output."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    axes = clues.axes_listed(since=13, slot=1)
    if axes is None:
        added = clues.count(1)
        if added is not None:
            yield RankSum(y, [x], added)
        return
    yield RankSum(y, [x], len(axes))
    rank = clues.rank(y)
    if rank is not None:
        yield from _without(clues, y, x, clues.axes(axes, rank), rank)


@rule("Squeeze", parts=(0,))
def squeeze(clues: Clues) -> Iterator[Relation]:
    """Axes of size 1 taken away; all of them where none is listed, which needs every size of the input."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    axes = clues.axes_listed(since=13, slot=1)
    if not axes:
        return
    yield RankSum(x, [y], len(axes))
    rank = clues.rank(x)
    if rank is not None:
        yield from _without(clues, x, y, clues.axes(axes, rank), rank)


def _without(
    clues: Clues, wide: OutletId, narrow: OutletId, axes: tuple[int, ...], rank: int
) -> Iterator[Relation]:
    """``narrow`` is ``wide`` without some axes, which are of size 1."""
    one: list[Dim] = [ONE if axis in axes else None for axis in range(rank)]
    yield HasSizes(wide, tuple(one))
    yield Mapped(narrow, wide, [axis for axis in range(rank) if axis not in axes])


@rule("Flatten")
def flatten(clues: Clues) -> Iterator[Relation]:
    """To two axes: those before ``axis``, and the rest."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    yield HasRank([y], 2)
    rank = clues.rank(x)
    if rank is not None:
        axis = clues.integer("axis", 1)
        axis = axis if axis == rank else clues.axis(axis, rank)
        yield SameCount([Axis(x, before) for before in range(axis)], [Axis(y, 0)])
        yield SameCount([Axis(x, behind) for behind in range(axis, rank)], [Axis(y, 1)])


@rule("Reshape")
def reshape(clues: Clues) -> Iterator[Relation]:
    """The entries stay; 0 copies a size (unless allowzero), -1 takes what is left."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    sizes, count = clues.sizes(1), clues.count(1)
    if count is not None:
        yield HasRank([y], count)
    if sizes is not None:
        copies = not clues.flag("allowzero")
        yield HasSizes(y, tuple(size if _is_size(size, copies) else None for size in sizes))
        for axis in (axis for axis, size in enumerate(sizes) if copies and size is not None and size == 0):
            yield SameSize([Axis(x, axis), Axis(y, axis)])
    ranks = clues.rank(x), clues.rank(y)
    if ranks[0] is not None and ranks[1] is not None:
        yield SameCount(
            [Axis(x, axis) for axis in range(ranks[0])], [Axis(y, axis) for axis in range(ranks[1])]
        )


def _is_size(size: Dim, copies: bool) -> bool:
    """Whether an entry of a target shape is the size itself."""
    return size is not None and size != -1 and not (copies and size == 0)


@rule("Tile", uniform=True)
def tile(clues: Clues) -> Iterator[Relation]:
    """Repeated along each axis."""
    yield SameType([clues.input(0), clues.output])
    yield SameRank([clues.input(0), clues.output])


@rule("DepthToSpace", "SpaceToDepth")
def blocks(clues: Clues) -> Iterator[Relation]:
    """Between channels and blocks of an image [N, C, H, W]."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    yield HasRank([x, y], 4)
    yield SameSize([Axis(x, 0), Axis(y, 0)])
