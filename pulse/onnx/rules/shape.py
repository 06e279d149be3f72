"""Shapes as tensors, and tensors of a given shape."""

from collections.abc import Iterator

import numpy as np

from pulse.infer.relations import HasRank, HasSizes, HasType, Relation, SameSize, SameType
from pulse.infer.wire_facts import Axis
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import rule

INT64 = np.dtype(np.int64)


@rule("Shape", uniform=True)
def shape(clues: Clues) -> Iterator[Relation]:
    """One i64 for each axis."""
    yield HasType([clues.output], INT64)
    yield HasRank([clues.output], 1)


@rule("Size")
def size(clues: Clues) -> Iterator[Relation]:
    """One i64."""
    yield HasType([clues.output], INT64)
    yield HasRank([clues.output], 0)


@rule("ConstantOfShape")
def constant_of_shape(clues: Clues) -> Iterator[Relation]:
    """A tensor of the shape that is listed."""
    sizes, count = clues.sizes(0), clues.count(0)
    default = np.zeros(1, dtype=np.float32)
    yield HasType([clues.output], clues.tensor("value", default).dtype)
    if count is not None:
        yield HasRank([clues.output], count)
    if sizes is not None:
        yield HasSizes(clues.output, sizes)


@rule("Expand")
def expand(clues: Clues) -> Iterator[Relation]:
    """Broadcast to a shape that is listed, which may have fewer axes, or sizes of 1."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    rank, count, sizes = clues.rank(x), clues.count(1), clues.sizes(1)
    if rank is None or count is None:
        return
    yield HasRank([y], max(rank, count))
    if sizes is not None:
        known = tuple(size if size is not None and size != 1 else None for size in sizes)
        yield HasSizes(y, (*(None,) * (rank - count), *known))
        ones = [place for place in range(-count, 0) if sizes[place] is not None and known[place] is None]
        for place in (*range(-rank, -count), *(place for place in ones if -place <= rank)):
            yield SameSize([Axis(x, place), Axis(y, place)])
