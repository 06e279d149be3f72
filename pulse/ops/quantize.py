"""A function of integers, by a table of its values."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import FactError
from pulse.facts import Array, TypedFact
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.support.record import record


@record
class CodeTable(Op):
    """The entry of a table selected by an integer; beyond its ends, the nearest entry.

    y[i...] = table[rint(x[i...]) - first]

    Inputs   x [I...], table [N], of f32
    Output   y [I...]
    Stream   pointwise
    Raises   FactError: the table is not an f32 row with an entry, or x is not f32
    """

    first: int
    steps = 0
    detail_format = "from {first}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, table = inputs
        if x.dtype != np.float32 or table.dtype != np.float32 or table.rank != 1 or table.shape[0] == 0:
            raise FactError(f"the codes and a row of entries must be f32, got {x} and {table}")
        return [TypedFact(x.dtype, x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, table = inputs
        index = np.clip(np.nan_to_num(np.rint(x) - self.first), 0, len(table) - 1)
        return [table[index.astype(np.int64)]]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        if axes[1] is not None or axes[0] is None:
            return Whole("its table is a stream", "give the table as a constant")
        return Pointwise((axes[0],))
