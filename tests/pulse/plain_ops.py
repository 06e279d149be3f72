"""Bases for ops of tests."""

from collections.abc import Sequence

from pulse.facts import TypedFact
from pulse.ops.op import Op, Pointwise, Relation


class SameFactOp(Op):
    """An op whose output has the type and the shape of its first input."""

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(inputs[0].dtype, inputs[0].shape)]


class PointwiseOp(SameFactOp):
    """An op whose frames depend on the same frames of its first input."""

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        assert axes[0] is not None
        return Pointwise((axes[0],))
