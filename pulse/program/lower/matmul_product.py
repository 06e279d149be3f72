"""Window products, the basis of convolutions, matrix products and recurrent layers.

A window product reads, for each output row, T segments of K contiguous floats of the input: the taps of a
convolution, each over its channels. So channels are innermost in memory, and time outermost.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.ops.quantize_rows import MAX_ROW
from pulse.program.dft_basis import DftBasis, dft_tables, find_dft_basis
from pulse.program.kernels.matmul_codes import ProductOfCodesRow, pack_codes
from pulse.program.kernels.matmul_finish import NO_FINISH, Finish
from pulse.program.kernels.matmul_product import ProductRow
from pulse.program.kernels.matmul_product_blocks import pack_product
from pulse.program.kernels.matmul_product_few import ProductFewRow, few_columns, pack_few
from pulse.program.kernels.spectral import FourierRow
from pulse.program.lowering import Lowering, PulsedNode
from pulse.program.table.memory import Value
from pulse.program.weights import Stored, stored_operand
from pulse.support.record import record
from pulse.support.wording import spell


def weights_of(lowering: Lowering, node: PulsedNode, slot: int, what: str) -> Array:
    """Return a constant f32 operand that is not empty. Raises CompileError."""
    value = lowering.known_value(node.inputs[slot])
    if value is not None and not value.size:
        raise CompileError(f"{node.name} ({node.op.name}): {what} is empty; use {spell('backend', 'numpy')}")
    if value is None or value.dtype != np.float32:
        raise CompileError(
            f"{node.name} ({node.op.name}): {what} must be a constant of f32; use {spell('backend', 'numpy')}"
        )
    return value


def stored_of(lowering: Lowering, node: PulsedNode, slot: int, what: str) -> Stored:
    """Return a constant operand, stored in the program's form of weights. Raises CompileError."""
    weights_of(lowering, node, slot, what)
    facts = [lowering.fact(operand) for operand in node.inputs]
    stored = stored_operand(node.name, node.op, facts, slot, lowering.form)
    assert stored is not None
    return stored


def bias_of(lowering: Lowering, node: PulsedNode, channels: int) -> Array:
    """Return the optional third operand, or zeros."""
    if len(node.inputs) < 3:
        return np.zeros(channels, np.float32)
    return weights_of(lowering, node, 2, "its bias")


def grid_offsets(steps: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return the offsets of every position of some axes; the last axis varies fastest."""
    total = np.zeros((), np.int64)
    for step, size in zip(steps, sizes):
        total = total[..., None] + np.arange(size, dtype=np.int64) * step
    return total.ravel()


@record
class WindowProduct:
    """A window product; of a depthwise window, each channel is multiplied only by its own weights.

    x            the operand of the windows
    rows_x       [M], the element of x at which each row begins
    taps         [T], the first element of each tap, counted from the begin of its row
    matrix       [T*K, N], weights or their codes; of a depthwise window [T, N]
    bias         [N]
    y            the result
    rows_y       [M], the element of y at which each row of N begins
    scales       [N], for int8 codes
    finish       the steps that follow; see ``Finishing.steps_on``
    rounds_rows  whether each tap of x is rounded to the form of the codes
    """

    x: Value
    rows_x: Array
    taps: Array
    matrix: Array
    bias: Array
    y: Value
    rows_y: Array
    scales: Array | None = None
    finish: Finish = NO_FINISH
    rounds_rows: bool = False

    @property
    def depth(self) -> int:
        """K, the number of elements of a tap."""
        return self.matrix.shape[0] // max(1, len(self.taps))

    @property
    def columns(self) -> int:
        """N, the number of columns."""
        return self.matrix.shape[1]


def emit_product(lowering: Lowering, product: WindowProduct) -> None:
    """Emit a window product by the algorithm with the least work: Fourier, few columns, or the general one."""
    has_scales = product.scales is not None
    basis = None if product.bias.any() or has_scales else find_dft_basis(product.matrix)
    if basis is not None:
        _emit_fourier(lowering, product, basis)
        return
    product = _merge_taps(product)
    depth, columns = product.depth, product.columns
    fields = _product_fields(lowering, product)
    if product.rounds_rows:
        weights = lowering.add_constant(pack_codes(product.matrix, len(product.taps)))
        lowering.emit(ProductOfCodesRow(W=weights, **fields))
        return
    few = few_columns(len(product.rows_x), len(product.taps), depth, columns)
    if few is None:
        _emit_general(lowering, product.matrix, fields)
    else:
        _emit_few(lowering, product, fields, *few)


def _merge_taps(product: WindowProduct) -> WindowProduct:
    """Merge taps that are adjacent in memory, unless each must be rounded alone."""
    taps, depth = product.taps, product.depth
    may_merge = not product.rounds_rows or (product.scales is None and depth * len(taps) <= MAX_ROW)
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
        "finish": product.finish,
    }


def _emit_general(lowering: Lowering, matrix: Array, fields: dict[str, Any]) -> None:
    """Emit a product of any size."""
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
        "finish": NO_FINISH if others.size else product.finish,
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


def _emit_fourier(lowering: Lowering, product: WindowProduct, basis: DftBasis) -> None:
    """Emit a product with a DFT basis."""
    first, second, w1, twiddles, w2 = dft_tables(basis)
    points, bins = basis.points, basis.bins
    depths: Array = np.arange(product.depth, dtype=np.int64)
    offsets: Array = np.add.outer(np.asarray(product.taps, np.int64), depths).ravel()
    no_offsets = np.zeros(1, np.int64)
    from_re, from_im = offsets[points.re], no_offsets if points.im is None else offsets[points.im]
    to_im = no_offsets if bins.im is None else bins.im
    w1_at, twiddles_at, w2_at = (lowering.add_constant(table) for table in (w1, twiddles, w2))
    ones = np.ones(1)
    lowering.emit(
        FourierRow(
            x=product.x,
            y=product.y,
            scratch=lowering.allocate_temporary((2 * first * second + 2 * twiddles.size,), product.x.dtype),
            M=len(product.rows_x),
            rows_x=lowering.add_table(product.rows_x),
            rows_y=lowering.add_table(product.rows_y),
            R=points.count,
            N1=first,
            N2=second,
            P=w1.shape[2],
            w1=w1_at,
            twiddles=twiddles_at,
            w2=w2_at,
            from_re=lowering.add_table(from_re),
            from_im=lowering.add_table(from_im),
            scales=lowering.add_constant(points.factors.astype(np.float32)),
            K=bins.count,
            to_re=lowering.add_table(bins.re),
            to_im=lowering.add_table(to_im),
            factors=lowering.add_constant(bins.factors.astype(np.float32)),
            has_im=points.im is not None,
            wants_im=bins.im is not None,
            near_re=find_contiguous_start(from_re, points.factors[0]),
            near_im=find_contiguous_start(from_im, points.factors[1]),
            next_re=find_contiguous_start(bins.re, ones) == 0,
            next_im=find_contiguous_start(to_im, ones) == 0,
            from_pairs=are_pairs(from_re, None if points.im is None else from_im),
            to_pairs=are_pairs(bins.re, bins.im),
            columns=product.columns,
            finish=product.finish,
        )
    )


def are_pairs(re: Array, im: Array | None) -> bool:
    """Return whether the parts are adjacent pairs: a real part, its imaginary part, the next real part, and so on."""
    return im is not None and bool((np.diff(re) == 2).all() and (im == re + 1).all())


def find_contiguous_start(offsets: Array, factors: Array) -> int:
    """Return the index of the first factor that is not zero if the offsets from there on are contiguous; else -1."""
    first = int((factors != 0).argmax())
    return first if (np.diff(offsets[first:]) == 1).all() else -1
