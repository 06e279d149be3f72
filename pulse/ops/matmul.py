"""Matrix products."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import FactError
from pulse.facts import Array, PulsedFact, TypedFact, dtype_name, volume
from pulse.ops.arithmetic import accumulator_type
from pulse.ops.dims import broadcast_shapes, unify
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.ops.weight_units import ActivationLayout, UnitLayout
from pulse.ops.work import Work
from pulse.support.record import record

ATTENTION_ADVICE = "limit the reach of each frame (a window of past frames), or compute it outside the stream"


@record
class MatMul(Op):
    """Matrix product, as numpy ``matmul``: batch axes broadcast, an operand of rank 1 is a row or a column.

    y[..., i, j] = sum_k a[..., i, k] * b[..., k, j]

    Inputs   a [..., I, K], b [..., K, J] of one type
    Output   y [..., I, J]
    Stream   pointwise on batch axes, on I of a and on J of b; whole on K, and on I and J at once
    Raises   FactError: K or the types differ, or a scalar
    Source   ONNX MatMul-13
    """

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        a, b = inputs
        if a.rank == 0 or b.rank == 0:
            raise FactError("a scalar is not a matrix: use mul")
        if a.dtype != b.dtype:
            raise FactError(f"operands of different types: {dtype_name(a.dtype)}, {dtype_name(b.dtype)}")
        unify(a.shape[-1], b.shape[-2 if b.rank > 1 else 0], "the axes that are summed over")
        batch = broadcast_shapes([a.shape[:-2], b.shape[:-2]], "batch axes")
        rows = a.shape[-2:-1]
        columns = b.shape[-1:] if b.rank > 1 else ()
        return [TypedFact(a.dtype, (*batch, *rows, *columns))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        a, b = inputs
        wide = accumulator_type(a)
        y = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
        return [np.asarray(y).astype(a.dtype, copy=False)]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return Work(volume(outputs[0].shape) * inputs[0].shape[-1])

    def weight_units(self, inputs: Sequence[PulsedFact], slot: int) -> UnitLayout | None:
        if slot != packed_operand(inputs):
            return None
        other = 1 - slot
        rows = ActivationLayout(other, inputs[other].rank - (1 if slot == 1 else 2))
        return UnitLayout(inputs[slot].sizes, (0,) if slot == 1 else (1,), rows)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        a, b = inputs
        batch = max(a.rank, b.rank, 2) - 2
        shifts = [batch - (max(fact.rank, 2) - 2) for fact in inputs]
        inner_axes = [a.rank - 1, max(b.rank - 2, 0)]
        if any(axis is not None and axis == inner for axis, inner in zip(axes, inner_axes)):
            return Whole("it sums over time", ATTENTION_ADVICE)
        result_axes: list[int] = []
        for slot, (fact, axis) in enumerate(zip(inputs, axes)):
            if axis is None:
                continue
            if axis < fact.rank - 2:
                result_axes.append(axis + shifts[slot])
            else:
                result_axes.append(batch if slot == 0 else batch + (a.rank > 1))
        if len(set(result_axes)) > 1:
            return Whole("every frame of one operand meets every frame of the other", ATTENTION_ADVICE)
        result_axis = result_axes[0]
        for fact, axis, shift in zip(inputs, axes, shifts):
            operand_axis = result_axis - shift
            if axis is None and result_axis < batch and operand_axis >= 0 and fact.shape[operand_axis] != 1:
                return Whole(
                    f"an operand of constant length {fact.shape[operand_axis]} meets the stream axis",
                    "slice it to the stream's length, or let it broadcast over time",
                )
        return Pointwise((result_axis,))


def packed_operand(inputs: Sequence[PulsedFact]) -> int | None:
    """Return the operand of a matrix product that is a constant matrix times a tensor; None for two tensors."""
    left, right = inputs
    if _is_matrix(right) and left.value is None:
        return 1
    if _is_matrix(left) and right.value is None and right.rank >= 2:
        return 0
    return None


def _is_matrix(fact: PulsedFact) -> bool:
    return fact.value is not None and fact.rank == 2 and fact.dtype == np.float32
