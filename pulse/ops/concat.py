"""Joining tensors along an axis."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.ops.dims import require_at_least, unify
from pulse.ops.op import Ends, Env, Op, Pointwise, Relation, Whole, Window
from pulse.support.record import record


@record
class Concat(Op):
    """Join tensors along an axis.

    Inputs   x_i [..., X_i, ...], equal on all other axes
    Output   y [..., sum X_i, ...]
    Stream   pointwise on another axis; along the stream, one stream with constants at its ends
    Raises   FactError: ranks, types or the other axes differ
    Source   ONNX Concat-13
    """

    axis: int
    symbolic = copies = True
    detail_format = "axis {axis}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        first = inputs[0]
        shape = list(first.shape)
        for fact in inputs[1:]:
            if fact.rank != first.rank or fact.dtype != first.dtype:
                raise FactError(f"{first} and {fact} differ in rank or type")
            for axis, dim in enumerate(fact.shape):
                shape[axis] = (
                    shape[axis] + dim if axis == self.axis else unify(shape[axis], dim, f"axis {axis}")
                )
        if len(inputs) > 1:
            for fact in inputs:
                require_at_least(fact.shape[self.axis], TDim.of(0), "a part of a join")
        return [TypedFact(first.dtype, tuple(shape))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        if any(is_symbolic(value) for value in inputs):
            return [np.concatenate([value.astype(object) for value in inputs], self.axis)]
        return [np.concatenate(inputs, self.axis)]

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        parts = [slot for slot, fact in enumerate(inputs) if fact.shape[self.axis] != 0] or [0]
        return parts[0] if len(parts) == 1 else None

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        streams = [slot for slot, axis in enumerate(axes) if axis is not None]
        axis = axes[streams[0]]
        assert axis is not None
        if any(axes[slot] != axis for slot in streams):
            return Whole("streams meet on different axes", "transpose one of them")
        if axis != self.axis:
            if len(streams) < len(inputs):
                return Whole(
                    "a tensor without a stream axis is joined to a stream", "expand it over time first"
                )
            return Pointwise((axis,))
        if len(streams) > 1:
            return Whole(
                "the second stream begins where the first one ends",
                "join streams along another axis, or only constants to the ends of a stream; after a circular shift "
                "(roll), drop or overwrite the frames that come from the other end",
            )
        (source,) = streams
        values = [fact.value for slot, fact in enumerate(inputs) if slot != source]
        if any(value is None or is_symbolic(value) for value in values):
            return Whole("what is joined to an end of the stream is not constant", "join constants")
        constants = [value for value in values if value is not None]
        head, tail = constants[:source], constants[source:]
        ends = Ends(
            axis,
            TDim.of(sum(value.shape[axis] for value in head)),
            TDim.of(sum(value.shape[axis] for value in tail)),
            head=np.concatenate(head, axis) if head else None,
            tail=np.concatenate(tail, axis) if tail else None,
        )
        return Window(axis, ends=ends, source=source)
