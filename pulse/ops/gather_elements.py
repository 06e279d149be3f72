"""Elements and slices read at indices that are computed while running."""

from collections.abc import Sequence

from pulse.errors import FactError
from pulse.facts import Array, DType, TypedFact
from pulse.ops.check import Check, index_check
from pulse.ops.dims import unify
from pulse.ops.indices import (
    INDEX_ADVICE,
    along_relation,
    checks_of_columns,
    grid,
    index_depth,
    require_along,
    require_integers,
    wrap_index,
)
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class GatherElements(Op):
    """Elements along one axis, each with its own index.

    y[a..., i, b...] = x[a..., indices[a..., i, b...], b...]

    Inputs   x [A..., X, B...], indices [A'..., I, B'...] of an integer type with A' <= A, B' <= B
    Output   y of the shape of indices
    Stream   pointwise on A and B where both inputs stream, and on I where x does not; else whole
    Raises   FactError: the shapes do not fit
    Source   ONNX GatherElements-13
    """

    axis: int
    copies = True
    detail_format = "axis {axis}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, indices = inputs
        require_integers(indices)
        require_along(x, indices, self.axis)
        return [TypedFact(x.dtype, indices.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, indices = inputs
        index = grid(indices.shape)
        index[self.axis] = wrap_index(indices, x.shape[self.axis])
        return [x[tuple(index)]]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        return [index_check(shapes[0][self.axis])]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        if [*axes] == [None, self.axis]:
            return Pointwise((self.axis,))
        return along_relation(inputs, axes, self.axis)


@record
class GatherBatches(Op):
    """Slices by index, each batch with its own indices.

    y[b..., i..., :] = x[b..., indices[b..., i..., 0], …, indices[b..., i..., K-1], :]

    Inputs   x [B..., D0 … DK-1, R...], indices [B..., I..., K] of an integer type; ``batch`` axes B
    Output   y [B..., I..., R...]
    Stream   pointwise on B where both inputs stream, and on I where x does not; else whole
    Raises   FactError: the shapes do not fit
    Source   ONNX GatherND-13
    """

    batch: int
    copies = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, indices = inputs
        require_integers(indices)
        depth = index_depth(TypedFact(x.dtype, x.shape[self.batch :]), indices)
        if indices.rank <= self.batch:
            raise FactError(
                f"indices {indices} have no more than {count_of(self.batch, 'batch axis', 'batch axes')}"
            )
        shape = [unify(x.shape[a], indices.shape[a], f"batch axis {a}") for a in range(self.batch)]
        shape += [*indices.shape[self.batch : -1], *x.shape[self.batch + depth :]]
        return [TypedFact(x.dtype, tuple(shape))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, indices = inputs
        count = indices.shape[-1]
        shape = indices.shape[:-1]
        index = grid(shape)[: self.batch]
        index += [wrap_index(indices[..., k], x.shape[self.batch + k]) for k in range(count)]
        return [x[tuple(index)]]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        return checks_of_columns(shapes, self.batch)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        x_axis, index_axis = axes
        if x_axis is None and index_axis is not None and self.batch <= index_axis < inputs[1].rank - 1:
            return Pointwise((index_axis,))
        if x_axis is None or x_axis != index_axis or x_axis >= self.batch:
            return Whole("its indices choose among frames of the whole stream", INDEX_ADVICE)
        return Pointwise((x_axis,))

    def detail(self) -> str:
        return count_of(self.batch, "batch axis", "batch axes")
