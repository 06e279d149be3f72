"""Slices, splits, concatenation, padding and lookups. How far a slice reaches, the translators know."""

from collections.abc import Iterator

from pulse.infer.relations import RankSum, Relation, SameRank, SameShape, SameSize, SameType, Scaled, SizeSum
from pulse.infer.wire_facts import Axis
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import EVERY, rule


@rule("Concat", parts=EVERY)
def concat(clues: Clues) -> Iterator[Relation]:
    """The sizes of one axis add up; those of the others are the same."""
    parts, y = clues.given(), clues.output
    yield SameType([*parts, y])
    yield SameRank([*parts, y])
    rank = clues.rank(y)
    if rank is not None:
        joined = clues.axis(clues.integer("axis"), rank)
        yield SizeSum(Axis(y, joined), [Axis(part, joined) for part in parts])
        for axis in (axis for axis in range(rank) if axis != joined):
            yield SameSize([Axis(wire, axis) for wire in (*parts, y)])


@rule("Split", uniform=True)
def split(clues: Clues) -> Iterator[Relation]:
    """Concatenation the other way round; all parts are as long where no lengths are given, before opset 18."""
    x, parts = clues.input(0), clues.outlets
    yield SameType([x, *parts])
    yield SameRank([x, *parts])
    rank = clues.rank(x)
    if rank is None:
        return
    divided = clues.axis(clues.integer("axis", 0), rank)
    yield SizeSum(Axis(x, divided), [Axis(part, divided) for part in parts])
    if clues.opset < 18 and "split" not in clues.attributes and not clues.has(1):
        for part in parts:
            yield Scaled(Axis(x, divided), Axis(part, divided), len(parts))
    for axis in (axis for axis in range(rank) if axis != divided):
        yield SameSize([Axis(wire, axis) for wire in (x, *parts)])


@rule("Slice", uniform=True, parts=(0,))
@rule("Pad", uniform=True)
@rule("Resize", "Upsample", "Trilu", "ReverseSequence")
def resized(clues: Clues) -> Iterator[Relation]:
    """Type and axes stay."""
    yield SameType([clues.input(0), clues.output])
    yield SameRank([clues.input(0), clues.output])


@rule("Gather", uniform=True, parts=(0,))
def gather(clues: Clues) -> Iterator[Relation]:
    """The axes of the indices take the place of one axis of the data."""
    x, indices, y = clues.input(0), clues.input(1), clues.output
    yield SameType([x, y])
    yield RankSum(y, [x, indices], -1)


@rule("GatherElements")
def gather_elements(clues: Clues) -> Iterator[Relation]:
    """An entry for each index."""
    x, indices, y = clues.input(0), clues.input(1), clues.output
    yield SameType([x, y])
    yield SameRank([x, indices])
    yield SameShape([indices, y])


@rule("ScatterND", "ScatterElements", "TensorScatter")
def scatter(clues: Clues) -> Iterator[Relation]:
    """Type and shape stay."""
    yield SameType([clues.input(0), clues.output])
    yield SameShape([clues.input(0), clues.output])
