"""Determinants."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pulse.extend import Array, Env, FactError, Op, Pointwise, Relation, TypedFact, Whole, unify


@dataclass(frozen=True)
class Det(Op):
    """The determinant of each matrix.

    Input    x [..., M, M]
    Output   y [...]
    Stream   pointwise on the axes before, whole on M
    Raises   FactError: x is not square
    Source   ONNX Det-22
    """

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if x.rank < 2:
            raise FactError(f"{x} is not a matrix")
        unify(x.shape[-1], x.shape[-2], "the sides of a square")
        return [TypedFact(x.dtype, x.shape[:-2])]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        return [np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        if axis >= inputs[0].rank - 2:
            return Whole("a determinant needs all of its matrix", "let time be an earlier axis")
        return Pointwise((axis,))
