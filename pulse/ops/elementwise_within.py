"""Integers, also as floats, that must lie in a range."""

from collections.abc import Sequence

from pulse.facts import Array, DType, TypedFact
from pulse.ops.check import Check
from pulse.ops.elementwise import BroadcastingOp
from pulse.ops.op import Env
from pulse.support.record import record


@record
class RangeCheck(BroadcastingOp):
    """The input unchanged; a value outside ``low … high`` has no result.

    For operators built of several ops, none of which checks the range.

    kind     the type that must hold the values, for messages: floats that stand for its integers

    Stream   pointwise
    """

    low: int
    high: int
    kind: str = ""
    copies = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(inputs[0].dtype, inputs[0].shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [inputs[0]]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        return [Check(0, self.low, self.high, kind=self.kind)]

    def detail(self) -> str:
        return f"{self.low} … {self.high} {self.kind}".rstrip()
