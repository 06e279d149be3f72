"""Models in f16 compute in f32, as in onnxruntime on a CPU; kernels load the weights as f16, which holds them exactly.

A ``Cast`` to f16 that a file has is still a rounding.
"""

from collections.abc import Sequence
from dataclasses import replace

from pulse.facts import F16, F32, Array, DType, TypedFact
from pulse.graph import OutletId
from pulse.ops.elementwise import BitCast, Cast
from pulse.ops.op import Op
from pulse.substitution import Substitution
from pulse.typed import TypedGraph, TypedNetwork
from pulse.wiring import wire


def with_f32_for_f16(model: TypedNetwork) -> TypedNetwork:
    """Return the model with f32 in place of f16, its inputs and outputs included; the model itself if it has no f16.

    Casts to f16 still round, and the bits of an f16 are still those of an f16.
    """
    if not _has_f16(model.graph):
        return model
    substitution = _F32ForF16(model.scope)
    variables = tuple(
        variable
        if variable.initial is None
        else replace(variable, initial=substitution.array(variable.initial))
        for variable in model.variables
    )
    return replace(substitution.model(model), variables=variables, spending=model.spending)


def _has_f16(graph: TypedGraph) -> bool:
    return any(
        any(outlet.fact.dtype == F16 for outlet in node.outputs) or any(map(_has_f16, node.op.bodies))
        for node in graph.nodes
    )


class _F32ForF16(Substitution):
    """Replaces f16 by f32 in everything but casts and the reading of bits."""

    def dtype(self, dtype: DType) -> DType:
        return F32 if dtype == F16 else dtype

    def array(self, array: Array) -> Array:
        return array.astype(F32) if array.dtype == F16 else array

    def keeps(self, fact: TypedFact) -> bool:
        return fact.dtype != F16

    def op(self, op: Op) -> Op:
        return op if isinstance(op, Cast | BitCast) else super().op(op)

    def wire(
        self, graph: TypedGraph, name: str, op: Op, inputs: Sequence[OutletId], original: Sequence[TypedFact]
    ) -> list[OutletId]:
        """Wire a node again; a conversion keeps its own types, between wires of f32.

        From f16 to f16 it copies. Where bits are read as f16 or from f16, and where a number is rounded to f16, the f16
        is a wire of its own, converted from or to f32.
        """
        if not isinstance(op, Cast | BitCast):
            return wire(graph, name, op, inputs)
        (operand,), was_f16 = inputs, original[0].dtype == F16
        if isinstance(op, Cast) and was_f16 and op.dtype == F16:
            return wire(graph, name, Cast(F32), [operand])
        if isinstance(op, BitCast) and was_f16:
            (operand,) = wire(graph, f"{name}.f16", Cast(F16), [operand])
        if op.dtype != F16:
            return wire(graph, name, op, [operand])
        (rounded,) = wire(graph, f"{name}.f16", op, [operand])
        return wire(graph, name, Cast(F32), [rounded])
