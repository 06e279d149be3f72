"""Weights that are the basis of a Fourier transform, and the errors of their elements.

A kernel computes such a product as a transform: each element then has the rounding error of its point and its bin, not
its own. A sine that is zero but for rounding, such as 1.2e-16 for ``sin(pi)``, is zero there.

Source: N. Higham, Accuracy and Stability of Numerical Algorithms, chapter 24: errors relative to the norm.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pulse.facts import F32, Array, PulsedFact, shape_of
from pulse.ops.op import Op
from pulse.program.spectral_basis import MIN_MATRIX_ELEMENTS
from pulse.program.weights import is_transform


class TransformWeights:
    """The operands of a model's nodes that are bases of transforms; each node is examined once."""

    def __init__(self) -> None:
        self._scales: dict[int, Mapping[int, Array]] = {}

    def scales(self, index: int, op: Op, inputs: Sequence[Array]) -> Mapping[int, Array]:
        """Return what the errors of such operands are relative to: operand -> the factors of point and bin.

        index  the node's place in the order of evaluation
        """
        if index not in self._scales:
            self._scales[index] = dict(_find_scales(op, inputs))
        return self._scales[index]


def _find_scales(op: Op, inputs: Sequence[Array]) -> Iterator[tuple[int, Array]]:
    for slot, operand in enumerate(inputs):
        if operand.dtype.kind != "f" or operand.size < MIN_MATRIX_ELEMENTS:
            continue
        with np.errstate(over="ignore"):
            weight = operand.astype(F32)
        if not np.array_equal(weight, operand):
            continue
        facts = [PulsedFact(F32, shape_of(*x.shape), weight if x is operand else None) for x in inputs]
        layout = op.weight_units(facts, slot)
        if layout is None or not is_transform(weight, layout):
            continue
        sizes = np.abs(operand).reshape(layout.shape)
        units = tuple(axis for axis in range(len(layout.shape)) if axis not in layout.summed)
        points, bins = sizes.max(units, keepdims=True), sizes.max(layout.summed, keepdims=True)
        yield slot, (points * bins / sizes.max()).reshape(operand.shape)
