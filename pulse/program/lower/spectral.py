"""Products with constant DFT bases, emitted as Fourier transforms; ``spectral_basis`` recognises these products."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from pulse.facts import Array
from pulse.program.kernels.matmul.epilogue import ADD, EpilogueStep
from pulse.program.kernels.spectral import FourierRow, count_scratch
from pulse.program.lower.matmul_windows import WindowProduct
from pulse.program.lowering import Lowering
from pulse.program.spectral_basis import DftBasis, dft_tables, find_dft_basis

Parts: TypeAlias = tuple[Array, Array | None]
"""The offsets of real and imaginary parts; None without imaginary parts."""


def find_bases(product: WindowProduct) -> list[DftBasis] | None:
    """Return the DFT basis of a product, or the bases of its taps, or None.

    The frames of an inverse transform that overlap in an output are taps; with an overlap of one half or three
    quarters, each is a transform whose points are turned.
    """
    basis = find_dft_basis(product.matrix)
    if basis is not None and not (product.epilogue.gate_count and basis.rest_of(product.matrix).any()):
        return [basis]
    if basis is not None or len(product.taps) < 2 or product.epilogue.gate_count:
        return None
    bases: list[DftBasis] = []
    for matrix in np.split(product.matrix, len(product.taps)):
        basis = find_dft_basis(np.ascontiguousarray(matrix))
        if basis is None:
            return None
        bases.append(basis)
    return bases


def rest_of(product: WindowProduct, bases: Sequence[DftBasis]) -> Array:
    """Return the weights of a product that its transforms leave out: usually none, all are zero."""
    matrices = np.split(product.matrix, len(bases))
    return np.concatenate([basis.rest_of(matrix) for basis, matrix in zip(bases, matrices)])


def emit_transforms(lowering: Lowering, product: WindowProduct, bases: Sequence[DftBasis]) -> None:
    """Emit a product as the sum of transforms, one for each of its taps if there are several."""
    if len(bases) == 1:
        _emit_transform(lowering, product, bases[0])
        return
    previous: WindowProduct | None = None
    for i, (basis, matrix) in enumerate(zip(bases, np.split(product.matrix, len(bases)))):
        part = replace(product, taps=product.taps[i : i + 1], matrix=matrix)
        if i < len(bases) - 1:
            part = into_temporary(lowering, part)
        if previous is not None:
            part = add_result(lowering, part, previous)
        _emit_transform(lowering, part, basis)
        previous = part


def into_temporary(lowering: Lowering, product: WindowProduct) -> WindowProduct:
    """Return a product without the steps that follow, whose result is a temporary."""
    rows, columns = len(product.rows_x), product.columns
    y = lowering.allocate_temporary((rows, columns), product.x.dtype)
    epilogue = replace(product.epilogue, step_count=0, steps=[])
    return replace(product, y=y, rows_y=np.arange(rows, dtype=np.int64) * columns, epilogue=epilogue)


def add_result(lowering: Lowering, product: WindowProduct, other: WindowProduct) -> WindowProduct:
    """Return a product that adds the result of another one before its own steps."""
    added = EpilogueStep(
        code=ADD, parameter=0.0, limit=0.0, operand=other.y, rows=lowering.add_table(other.rows_y)
    )
    steps = [added, *product.epilogue.steps]
    return replace(product, epilogue=replace(product.epilogue, step_count=len(steps), steps=steps))


def _emit_transform(lowering: Lowering, product: WindowProduct, basis: DftBasis) -> None:
    """Emit a product with a DFT basis."""
    first, second, w1, twiddles, w2 = dft_tables(basis)
    points, bins = basis.points, basis.bins
    depths: Array = np.arange(product.depth, dtype=np.int64)
    offsets: Array = np.add.outer(np.asarray(product.taps, np.int64), depths).ravel()
    no_offsets = np.zeros(1, np.int64)
    from_re, from_im = offsets[points.re], no_offsets if points.im is None else offsets[points.im]
    point_parts = from_re, None if points.im is None else from_im
    to_im = no_offsets if bins.im is None else bins.im
    w1_operand, twiddles_operand, w2_operand = (lowering.add_constant(table) for table in (w1, twiddles, w2))
    lowering.emit(
        FourierRow(
            x=product.x,
            y=product.y,
            scratch=lowering.allocate_temporary((count_scratch(first, second),), product.x.dtype),
            M=len(product.rows_x),
            rows_x=lowering.add_table(product.rows_x),
            rows_y=lowering.add_table(product.rows_y),
            R=points.count,
            N1=first,
            N2=second,
            P=w1.shape[2],
            w1=w1_operand,
            twiddles=twiddles_operand,
            w2=w2_operand,
            from_re=lowering.add_table(from_re),
            from_im=lowering.add_table(from_im),
            scales=lowering.add_constant(points.factors.astype(np.float32)),
            K=bins.count,
            to_re=lowering.add_table(bins.re),
            to_im=lowering.add_table(to_im),
            factors=lowering.add_constant(bins.factors.astype(np.float32)),
            has_im=points.im is not None,
            wants_im=bins.im is not None,
            **find_contiguous(point_parts, points.factors, (bins.re, bins.im)),
            from_pairs=are_pairs(*point_parts),
            to_pairs=are_pairs(bins.re, bins.im),
            columns=product.columns,
            epilogue=product.epilogue,
        )
    )


def are_pairs(re: Array, im: Array | None) -> bool:
    """Return whether the parts are adjacent pairs: a real part, its imaginary part, the next real part, and so on."""
    return im is not None and bool((np.diff(re) == 2).all() and (im == re + 1).all())


def find_contiguous(points: Parts, factors: Array, bins: Parts) -> dict[str, int]:
    """Return the fields of ``FourierRow`` for contiguous offsets: real and imaginary parts of points, then of bins."""
    (first_re, stop_re), (first_im, stop_im) = (_used_run(*part) for part in zip(points, factors))
    next_re, next_im = (_count_contiguous(offsets) for offsets in bins)
    return {
        "first_re": first_re,
        "stop_re": stop_re,
        "next_re": next_re,
        "first_im": first_im,
        "stop_im": stop_im,
        "next_im": next_im,
    }


def _used_run(offsets: Array | None, factors: Array) -> tuple[int, int]:
    """Return the first point with a factor that is not zero, and the one after the last; zeros if there are gaps."""
    (used,) = factors.nonzero()
    if offsets is None or not len(used) or (np.diff(offsets[used[0] : used[-1] + 1]) != 1).any():
        return 0, 0
    return int(used[0]), int(used[-1]) + 1


def _count_contiguous(offsets: Array | None) -> int:
    """Return how many of the first offsets are contiguous."""
    if offsets is None:
        return 0
    gaps = np.diff(offsets) != 1
    return int(gaps.argmax()) + 1 if gaps.any() else len(offsets)
