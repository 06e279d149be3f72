"""Fourier transforms for sixteen streams with interleaved memories."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.spectral import FourierRow
from pulse.program.kernels.spectral_interleaved import InterleavedFourierRow, angles_last
from pulse.program.lower.interleaved.lowering import InterleavedLowering, interleaves


@interleaves(FourierRow)
def interleave_fourier(lowering: InterleavedLowering, row: FourierRow) -> Iterator[Instruction]:
    """Emit the same two rounds, with vectors over the streams."""
    w1, twiddles = lowering.read_constant(row.w1), lowering.read_constant(row.twiddles)
    scales = lowering.read_constant(row.scales)
    yield lowering.row_like(
        row,
        InterleavedFourierRow,
        ("rows_x", "rows_y", "w2", "scales", "to_re", "to_im", "factors"),
        w1=lowering.add_table(angles_last(w1, row.N1)),
        twiddles=lowering.add_table(angles_last(twiddles, row.N1)),
        from_re=lowering.add_table(_point_offsets(lowering, row.from_re, scales[0])),
        from_im=lowering.add_table(_point_offsets(lowering, row.from_im, scales[1]))
        if row.has_im
        else lowering.share(row.from_im),
        epilogue=lowering.convert_epilogue(row.epilogue),
    )


def _point_offsets(lowering: InterleavedLowering, table: Any, scales: Array) -> Array:
    """Return the offsets of the points; those with factor 0 get the offset of another point, so that all are in x."""
    offsets = lowering.read_constant(table).ravel()
    is_used = scales != 0
    return np.where(is_used, offsets, offsets[is_used.argmax()])
