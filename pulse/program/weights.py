"""Storage of weights: f32 unchanged, bf16, or int8 with a scale for each output unit.

Weights are the constant matrices and kernels of products: of convolutions and their transposes, of matrix products,
and both matrices of recurrent layers. All other constants and all arithmetic stay f32: activations, sums
and biases. Depthwise convolutions and weights below ``MIN_ROUNDED_BYTES`` would gain nothing and stay f32 too, as do
Fourier transforms, which are faster than products with a matrix.

Weights that a smaller form holds exactly are always stored in it: integers as int8, half-precision weights as f16
or bf16.
"""

import math
from collections.abc import Sequence

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array, PulsedFact
from pulse.ops.op import Op
from pulse.ops.quantize_codes import MAX_CODE
from pulse.ops.weight_units import UnitLayout
from pulse.program.spectral_basis import find_dft_basis
from pulse.support.bf16 import from_bf16, to_bf16
from pulse.support.record import record
from pulse.support.wording import spell

MIN_ROUNDED_BYTES = 4096
"""The smallest f32 matrix that is rounded: smaller ones stay in the nearest cache, so fewer bits save no time."""


@record(eq=False)
class StoredWeight:
    """A weight in its stored form.

    codes   f32 itself, f16, bf16 as uint16, or int8; the shape of the weight
    scales  the scales of int8, f32 of the layout's shape, 1 along the summed axes: a weight is code * scale; else None
    layout  the axes of its output units
    """

    codes: Array
    scales: Array | None
    layout: UnitLayout | None

    @property
    def values(self) -> Array:
        """The weight that the codes represent, as f32."""
        if self.codes.dtype == np.uint16:
            return from_bf16(self.codes)
        if self.scales is None or self.layout is None:
            return self.codes.astype(np.float32, copy=False)
        return (self.codes.reshape(self.layout.shape) * self.scales).reshape(self.codes.shape)

    def scales_of(self, first: int = 0, count: int | None = None) -> Array | None:
        """Return the scales [count] of some output units, by default of all; None if the form has none."""
        if self.scales is None:
            return None
        return self.scales.ravel()[first:][:count]


def store(weight: Array, form: str, layout: UnitLayout) -> StoredWeight:
    """Store a weight in a form; int8 is symmetric: the largest weight of each output unit becomes 127 or -127.

    Raises ValueError: int8 cannot hold infinities and NaN
    """
    if form == "f32":
        return StoredWeight(weight, None, layout)
    if form == "bf16":
        return StoredWeight(to_bf16(weight), None, layout)
    if not np.isfinite(weight).all():
        raise ValueError("int8 cannot hold infinities and NaN")
    units = weight.reshape(layout.shape)
    largest = np.abs(units).max(axis=layout.summed, keepdims=True, initial=0)
    scales = (largest / MAX_CODE).astype(np.float32)
    steps = np.divide(units, scales, where=scales > 0, out=np.zeros_like(units))
    codes = np.clip(np.rint(steps), -MAX_CODE, MAX_CODE).astype(np.int8)
    return StoredWeight(codes.reshape(weight.shape), scales, layout)


def are_codes(weight: Array) -> bool:
    """Return whether int8 holds every weight exactly, as in a model that is already quantised."""
    if float(weight.ravel()[0]) % 1 or not np.isfinite(weight).all():
        return False
    info = np.iinfo(np.int8)
    return bool(((weight >= info.min) & (weight <= info.max) & (np.rint(weight) == weight)).all())


def as_codes(weight: Array, layout: UnitLayout) -> StoredWeight:
    """Store integers as int8, exactly, in a quarter of the memory."""
    units = [1 if axis in layout.summed else size for axis, size in enumerate(layout.shape)]
    return StoredWeight(weight.astype(np.int8), np.ones(units, np.float32), layout)


def as_16_bit(weight: Array) -> Array | None:
    """Return the weight in f16, or else bf16, if one of them holds it exactly; else None."""
    bits = weight.view(np.uint32)
    if bits.flat[0] & 0x1FFF or (bits & 0x1FFF).any() or not np.isfinite(weight).all():
        return None
    with np.errstate(over="ignore"):
        as_f16 = weight.astype(np.float16)
    if np.array_equal(as_f16.astype(np.float32), weight):
        return as_f16
    return None if (bits & 0xFFFF).any() else to_bf16(weight)


def stored_operand(
    name: str, op: Op, inputs: Sequence[PulsedFact], slot: int, form: str
) -> StoredWeight | None:
    """Return a constant operand of a node in its stored form; None if it is not an f32 constant.

    Raises CompileError: int8 cannot hold it
    """
    weight = inputs[slot].value
    if weight is None or weight.dtype != np.float32:
        return None
    layout = op.weight_units(inputs, slot)
    if layout is None or weight.nbytes < MIN_ROUNDED_BYTES or is_transform(weight, layout):
        return StoredWeight(weight, None, layout)
    if are_codes(weight):
        return as_codes(weight, layout)
    narrow = None if form == "int8" else as_16_bit(weight)
    if narrow is not None:
        return StoredWeight(narrow, None, layout)
    try:
        return store(weight, form, layout)
    except ValueError as error:
        raise CompileError(f"{name} ({op.name}): {error}; use {spell('weights', 'bf16')} or 'f32'") from error


def is_transform(weight: Array, layout: UnitLayout) -> bool:
    """Return whether the weights are the basis of a Fourier transform."""
    sum_axes = layout.summed
    rows = np.moveaxis(weight.reshape(layout.shape), sum_axes, range(len(sum_axes)))
    return find_dft_basis(rows.reshape(math.prod(rows.shape[: len(sum_axes)]), -1)) is not None
