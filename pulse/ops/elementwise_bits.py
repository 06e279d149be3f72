"""Bits read as another type."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import FactError
from pulse.facts import Array, DType, TypedFact, dtype_name
from pulse.ops.elementwise import broadcast_relation
from pulse.ops.op import Env, Op, Relation
from pulse.ops.work import NO_WORK, Work
from pulse.support.record import record


@record
class BitCast(Op):
    """The same bits as another type of the same width.

    Stream   pointwise
    Raises   FactError: the widths differ
    Source   ONNX BitCast-26
    """

    dtype: DType

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if x.dtype.itemsize != self.dtype.itemsize:
            raise FactError(
                f"the bits of {dtype_name(x.dtype)} are not as many as those of {dtype_name(self.dtype)}"
            )
        return [TypedFact(self.dtype, x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [np.ascontiguousarray(inputs[0]).reshape(inputs[0].shape).view(self.dtype)]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return NO_WORK

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return broadcast_relation(inputs, axes)

    def detail(self) -> str:
        return dtype_name(self.dtype)
