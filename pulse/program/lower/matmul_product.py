"""Emit window products, the basis of convolutions, matrix products and recurrent layers."""

from dataclasses import replace
from typing import Any

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array, dtype_name
from pulse.jit.language.simd import LANES
from pulse.ops.quantize_codes import MAX_ROW_ELEMENTS
from pulse.program.kernels.matmul.epilogue import NO_EPILOGUE
from pulse.program.kernels.matmul.product import ProductRow
from pulse.program.kernels.matmul.product_banded import Bands, ProductBandedRow
from pulse.program.kernels.matmul.product_blocks import pack_product
from pulse.program.kernels.matmul.product_codes import ProductOfCodesRow, pack_codes
from pulse.program.kernels.matmul.product_few import ProductFewRow, few_columns, pack_few
from pulse.program.lower.matmul_windows import WindowProduct
from pulse.program.lower.spectral import add_result, emit_transforms, find_bases, into_temporary, rest_of
from pulse.program.lowering import Lowering
from pulse.program.weights import StoredWeight, stored_operand
from pulse.pulsify.network import PulsedNode
from pulse.support.wording import spell

MIN_BANDED_ELEMENTS = 1024
"""Minimum number of elements of a matrix whose bands are looked for."""
MAX_BANDED_SHARE = 0.5
"""Maximum share of the vectors of a matrix that its bands may have, to be multiplied instead of the whole."""


def require_constant(lowering: Lowering, node: PulsedNode, slot: int, subject: str) -> Array:
    """Return a constant f32 operand that is not empty. Raises CompileError: it is not constant, not f32, or empty."""
    value = lowering.known_value(node.inputs[slot])
    if value is not None and not value.size:
        raise CompileError(
            f"{node.name} ({node.op.name}): {subject} is empty; use {spell('backend', 'numpy')}"
        )
    if value is None or value.dtype != np.float32:
        actual = "computed while running" if value is None else dtype_name(value.dtype)
        raise CompileError(
            f"{node.name} ({node.op.name}): {subject} must be a constant of f32, not {actual}; use "
            f"{spell('backend', 'numpy')}"
        )
    return value


def require_stored(lowering: Lowering, node: PulsedNode, slot: int, subject: str) -> StoredWeight:
    """Return a constant operand, stored in the program's form of weights.

    Raises CompileError: it is not a constant of f32, it is empty, or int8 cannot hold it
    """
    require_constant(lowering, node, slot, subject)
    facts = [lowering.fact(operand) for operand in node.inputs]
    stored = stored_operand(node.name, node.op, facts, slot, lowering.form)
    assert stored is not None
    return stored


def find_bias(lowering: Lowering, node: PulsedNode, channels: int) -> Array:
    """Return the optional third operand, or zeros."""
    if len(node.inputs) < 3:
        return np.zeros(channels, np.float32)
    return require_constant(lowering, node, 2, "its bias")


def emit_product(lowering: Lowering, product: WindowProduct) -> None:
    """Emit a window product by the cheapest algorithm: Fourier, bands, few columns, or the general one."""
    has_scales = product.scales is not None
    bases = None if product.bias.any() or has_scales else find_bases(product)
    if bases is not None:
        rest = rest_of(product, bases)
        if rest.any():
            rest_product = into_temporary(lowering, replace(product, matrix=rest))
            emit_product(lowering, rest_product)
            product = add_result(lowering, product, rest_product)
        emit_transforms(lowering, product, bases)
        return
    product = _merge_taps(product)
    depth, columns = product.depth, product.columns
    fields = _product_fields(lowering, product)
    if product.rounds_activations:
        weights = lowering.add_constant(pack_codes(product.matrix, len(product.taps)))
        lowering.emit(ProductOfCodesRow(W=weights, **fields))
        return
    bands = None if has_scales else _find_bands(product)
    if bands is not None:
        _emit_bands(lowering, bands, fields)
        return
    block = few_columns(len(product.rows_x), len(product.taps), depth, columns)
    if block is None:
        _emit_general(lowering, product.matrix, fields)
    else:
        _emit_few(lowering, product, fields, *block)


def _merge_taps(product: WindowProduct) -> WindowProduct:
    """Merge taps that are adjacent in memory, unless each must be rounded alone."""
    taps, depth = product.taps, product.depth
    may_merge = not product.rounds_activations or (
        product.scales is None and depth * len(taps) <= MAX_ROW_ELEMENTS
    )
    adjacent = len(taps) > 1 and np.array_equal(np.diff(taps), np.full(len(taps) - 1, depth))
    return replace(product, taps=taps[:1]) if may_merge and adjacent else product


def _product_fields(lowering: Lowering, product: WindowProduct) -> dict[str, Any]:
    """Return the fields of ``ProductRow``, except the weights."""
    scales = product.scales
    return {
        "x": product.x,
        "bias": lowering.add_constant(np.ascontiguousarray(product.bias)),
        "y": product.y,
        "M": len(product.rows_x),
        "rows_x": lowering.add_table(product.rows_x),
        "rows_y": lowering.add_table(product.rows_y),
        "T": len(product.taps),
        "taps": lowering.add_table(product.taps),
        "K": product.depth,
        "N": product.columns,
        "accumulate": False,
        "scales": None if scales is None else lowering.add_constant(np.ascontiguousarray(scales)),
        "epilogue": product.epilogue,
    }


def _find_bands(product: WindowProduct) -> Bands | None:
    """Return the bands of the weights, if a product of these alone is faster."""
    matrix = product.matrix
    rows, columns = matrix.shape
    is_large = matrix.size >= MIN_BANDED_ELEMENTS and columns > LANES
    if not is_large or len(product.taps) != 1 or matrix.dtype.kind != "f":
        return None
    max_inputs = MAX_BANDED_SHARE * rows * -(-columns // LANES)
    if np.count_nonzero(matrix != 0) > LANES * max_inputs:
        return None
    bands = Bands.of(matrix.astype(np.float32, copy=False), LANES)
    return bands if 0 < bands.counts.sum() <= max_inputs else None


def _emit_bands(lowering: Lowering, bands: Bands, fields: dict[str, Any]) -> None:
    """Emit a product of bands; ``fields``: those of a ``ProductRow``."""
    names = ("x", "bias", "y", "M", "rows_x", "rows_y", "T", "taps", "K", "N", "epilogue")
    lowering.emit(
        ProductBandedRow(
            **{name: fields[name] for name in names},
            inputs=len(bands.weights),
            starts=lowering.add_table(bands.starts),
            counts=lowering.add_table(bands.counts),
            W=lowering.add_constant(bands.weights.ravel()),
        )
    )


def _emit_general(lowering: Lowering, matrix: Array, fields: dict[str, Any]) -> None:
    lowering.emit(ProductRow(W=lowering.add_constant(pack_product(np.ascontiguousarray(matrix))), **fields))


def _emit_few(
    lowering: Lowering, product: WindowProduct, fields: dict[str, Any], width: int, inputs: int
) -> None:
    """Emit a product of few columns for the first ``inputs`` of each tap; a general product adds the others."""
    columns, depth = product.columns, product.depth
    taps = product.matrix.reshape(len(product.taps), depth, columns)
    first, others = taps[:, :inputs].reshape(-1, columns), taps[:, inputs:].reshape(-1, columns)
    first_fields: dict[str, Any] = fields | {
        "K": inputs,
        "epilogue": NO_EPILOGUE if others.size else product.epilogue,
    }
    weights = lowering.add_constant(pack_few(first, width))
    lowering.emit(ProductFewRow(W=weights, width=width, **first_fields))
    if others.size:
        other_fields = fields | {
            "bias": lowering.add_constant(np.zeros_like(product.bias)),
            "taps": lowering.add_table(np.asarray(product.taps) + inputs),
            "K": depth - inputs,
            "accumulate": True,
        }
        _emit_general(lowering, others, other_fields)
