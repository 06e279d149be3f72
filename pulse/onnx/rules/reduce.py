"""Reductions."""

from collections.abc import Iterator

import numpy as np

from pulse.infer.relations import HasRank, HasType, RankSum, Relation, SameRank, SameType
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import rule


@rule(
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
    uniform=True,
)
def reduction(clues: Clues) -> Iterator[Relation]:
    """The listed axes are gone, or of size 1; which sizes stay, the translator knows."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    if clues.flag("keepdims", True):
        yield SameRank([x, y])
        return
    axes = clues.axes_listed(since=13 if clues.op_type == "ReduceSum" else 18, slot=1)
    if axes is None:
        listed = clues.count(1)
        if listed:
            yield RankSum(x, [y], listed)
    elif axes:
        yield RankSum(x, [y], len(axes))
    else:
        yield SameRank([x, y]) if clues.flag("noop_with_empty_axes") else HasRank([y], 0)


@rule("ArgMax", "ArgMin", uniform=True)
def extreme(clues: Clues) -> Iterator[Relation]:
    """One axis is gone, or of size 1."""
    x, y = clues.input(0), clues.output
    yield HasType([y], np.dtype(np.int64))
    yield RankSum(x, [y], 0 if clues.flag("keepdims", True) else 1)
