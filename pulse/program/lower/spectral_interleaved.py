"""Fourier transforms for sixteen streams with interleaved memories."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaving import InterleavedLowering, interleaves
from pulse.program.kernels.spectral import FourierRow
from pulse.program.kernels.spectral_interleaved import InterleavedFourierRow, angles_last


@interleaves(FourierRow)
def interleave_fourier(cx: InterleavedLowering, row: FourierRow) -> Iterator[Instruction]:
    """Emit the same two rounds, with vectors over the streams."""
    w1, twiddles = cx.constant(row.w1), cx.constant(row.twiddles)
    scales = cx.constant(row.scales)
    yield InterleavedFourierRow(
        x=cx.data(row.x),
        y=cx.data(row.y),
        scratch=cx.data(row.scratch),
        M=row.M,
        rows_x=cx.share(row.rows_x),
        rows_y=cx.share(row.rows_y),
        R=row.R,
        N1=row.N1,
        N2=row.N2,
        w1=cx.table(angles_last(w1, row.N1)),
        twiddles=cx.table(angles_last(twiddles, row.N1)),
        w2=cx.share(row.w2),
        from_re=cx.table(_points(cx, row.from_re, scales[0])),
        from_im=cx.table(_points(cx, row.from_im, scales[1])) if row.has_im else cx.share(row.from_im),
        scales=cx.share(row.scales),
        K=row.K,
        to_re=cx.share(row.to_re),
        to_im=cx.share(row.to_im),
        factors=cx.share(row.factors),
        has_im=row.has_im,
        wants_im=row.wants_im,
        columns=row.columns,
        finish=cx.finish(row.finish),
    )


def _points(cx: InterleavedLowering, places: Any, scales: Array) -> Array:
    """Return the places of the points; those with factor 0 get the place of another point, so that all are in x."""
    offsets = cx.constant(places).ravel()
    counting = scales != 0
    return np.where(counting, offsets, offsets[counting.argmax()])
