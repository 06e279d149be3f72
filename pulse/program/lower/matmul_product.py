"""Window products, the basis of convolutions, matrix products and recurrent layers.

A window product reads, for each output row, T segments of K contiguous floats of the input: the taps of a
convolution, each over its channels. So channels are innermost in memory, and time outermost.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.ops.quantize_rows import MAX_ROW
from pulse.program.dft_basis import DftBasis, find_dft_basis, tables
from pulse.program.kernels.matmul_codes import ProductOfCodesRow, pack_codes
from pulse.program.kernels.matmul_finish import NO_FINISH, Finish
from pulse.program.kernels.matmul_product import ProductRow
from pulse.program.kernels.matmul_product_blocks import pack_product
from pulse.program.kernels.matmul_product_few import ProductFewRow, few_columns, pack_few
from pulse.program.kernels.spectral import FourierRow
from pulse.program.lowering import Lowering, PulsedNode
from pulse.program.table.memory import Value
from pulse.program.weights import Stored, stored_operand
from pulse.support.wording import spell


def weights_of(cx: Lowering, node: PulsedNode, slot: int, what: str) -> Array:
    """Return a constant f32 operand that is not empty. Raises CompileError."""
    value = cx.known_value(node.inputs[slot])
    if value is not None and not value.size:
        raise CompileError(f"{node.name} ({node.op.name}): {what} is empty; use {spell('backend', 'numpy')}")
    if value is None or value.dtype != np.float32:
        raise CompileError(
            f"{node.name} ({node.op.name}): {what} must be a constant of f32; use {spell('backend', 'numpy')}"
        )
    return value


def stored_of(cx: Lowering, node: PulsedNode, slot: int, what: str) -> Stored:
    """Return a constant operand, stored in the program's form of weights. Raises CompileError."""
    weights_of(cx, node, slot, what)
    facts = [cx.fact(operand) for operand in node.inputs]
    stored = stored_operand(node.name, node.op, facts, slot, cx.form)
    assert stored is not None
    return stored


def bias_of(cx: Lowering, node: PulsedNode, channels: int) -> Array:
    """Return the optional third operand, or zeros."""
    if len(node.inputs) < 3:
        return np.zeros(channels, np.float32)
    return weights_of(cx, node, 2, "its bias")


def grid_offsets(steps: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return the offsets of every position of some axes; the last axis varies fastest."""
    total = np.zeros((), np.int64)
    for step, size in zip(steps, sizes):
        total = total[..., None] + np.arange(size, dtype=np.int64) * step
    return total.ravel()


def emit_product(
    cx: Lowering,
    x: Value,
    rows_x: Array,
    taps: Array,
    matrix: Array,
    bias: Array,
    y: Value,
    rows_y: Array,
    scales: Array | None = None,
    finish: Finish = NO_FINISH,
    rounds_rows: bool = False,
) -> None:
    """Emit one window product; ``matrix`` is [T*K, N], weights or their codes; adjacent taps are merged.

    x            the operand of the windows
    rows_x       [M], the element of x at which each row begins
    taps         [T], the element of each tap, counted from the begin of the row; a tap is K elements
    matrix       [T*K, N]
    bias         [N]
    y            the result
    rows_y       [M], the element of y at which each row of N begins
    scales       [N], for int8 codes
    finish       the steps that follow, see ``Finishing.steps_on``
    rounds_rows  each tap of x is rounded to the form of the codes
    """
    depth = matrix.shape[0] // max(1, len(taps))
    basis = None if bias.any() or scales is not None else find_dft_basis(matrix)
    if basis is not None:
        depths: Array = np.arange(depth, dtype=np.int64)
        places: Array = np.add.outer(np.asarray(taps, np.int64), depths).ravel()
        _emit_fourier(
            cx=cx,
            basis=basis,
            x=x,
            rows_x=rows_x,
            places=places,
            y=y,
            rows_y=rows_y,
            columns=matrix.shape[1],
            finish=finish,
        )
        return
    may_join = not rounds_rows or (scales is None and depth * len(taps) <= MAX_ROW)
    if may_join and len(taps) > 1 and np.array_equal(np.diff(taps), np.full(len(taps) - 1, depth)):
        taps, depth = taps[:1], depth * len(taps)
    columns = matrix.shape[1]
    fields: dict[str, Any] = {
        "x": x,
        "bias": cx.constant(np.ascontiguousarray(bias)),
        "y": y,
        "M": len(rows_x),
        "rows_x": cx.table(rows_x),
        "rows_y": cx.table(rows_y),
        "T": len(taps),
        "taps": cx.table(taps),
        "K": depth,
        "N": columns,
        "accumulate": False,
        "scales": None if scales is None else cx.constant(np.ascontiguousarray(scales)),
        "finish": finish,
    }
    if rounds_rows:
        cx.emit(ProductOfCodesRow(W=cx.constant(pack_codes(matrix, len(taps))), **fields))
        return
    few = few_columns(len(rows_x), len(taps), depth, columns)
    if few is not None:
        width, whole = few
        parts = matrix.reshape(len(taps), depth, columns)
        first, matrix = (
            parts[:, inputs].reshape(-1, columns) for inputs in (slice(whole), slice(whole, None))
        )
        few_fields: dict[str, Any] = fields | {"K": whole, "finish": NO_FINISH if matrix.size else finish}
        cx.emit(ProductFewRow(W=cx.constant(pack_few(first, width)), width=width, **few_fields))
        if not matrix.size:
            return
        fields |= {
            "bias": cx.constant(np.zeros_like(bias)),
            "taps": cx.table(np.asarray(taps) + whole),
            "K": depth - whole,
            "accumulate": True,
        }
    cx.emit(ProductRow(W=cx.constant(pack_product(np.ascontiguousarray(matrix))), **fields))


def _emit_fourier(
    cx: Lowering,
    basis: DftBasis,
    x: Value,
    rows_x: Array,
    places: Array,
    y: Value,
    rows_y: Array,
    columns: int,
    finish: Finish,
) -> None:
    """Emit a product with a DFT basis; ``places``: the offset of each of its rows in x."""
    first, second, w1, twiddles, w2 = tables(basis)
    points, bins = basis.points, basis.bins
    nowhere = np.zeros(1, np.int64)
    from_re, from_im = places[points.re], nowhere if points.im is None else places[points.im]
    to_im = nowhere if bins.im is None else bins.im
    w1_at, twiddles_at, w2_at = (cx.constant(table) for table in (w1, twiddles, w2))
    ones = np.ones(1)
    cx.emit(
        FourierRow(
            x=x,
            y=y,
            scratch=cx.temporary((2 * first * second + 2 * twiddles.size,), x.dtype),
            M=len(rows_x),
            rows_x=cx.table(rows_x),
            rows_y=cx.table(rows_y),
            R=points.count,
            N1=first,
            N2=second,
            P=w1.shape[2],
            w1=w1_at,
            twiddles=twiddles_at,
            w2=w2_at,
            from_re=cx.table(from_re),
            from_im=cx.table(from_im),
            scales=cx.constant(points.factors.astype(np.float32)),
            K=bins.count,
            to_re=cx.table(bins.re),
            to_im=cx.table(to_im),
            factors=cx.constant(bins.factors.astype(np.float32)),
            has_im=points.im is not None,
            wants_im=bins.im is not None,
            near_re=neighbours_from(places[points.re], points.factors[0]),
            near_im=neighbours_from(from_im, points.factors[1]),
            next_re=neighbours_from(bins.re, ones) == 0,
            next_im=neighbours_from(to_im, ones) == 0,
            from_pairs=are_pairs(from_re, None if points.im is None else from_im),
            to_pairs=are_pairs(bins.re, bins.im),
            columns=columns,
            finish=finish,
        )
    )


def are_pairs(re: Array, im: Array | None) -> bool:
    """Whether the parts are adjacent pairs: a real part, its imaginary part, the next real part, and so on."""
    return im is not None and bool((np.diff(re) == 2).all() and (im == re + 1).all())


def neighbours_from(places: Array, factors: Array) -> int:
    """Return the index from which on the places are neighbours, if all earlier factors are zero; else -1."""
    first = int((factors != 0).argmax())
    return first if (np.diff(places[first:]) == 1).all() else -1
