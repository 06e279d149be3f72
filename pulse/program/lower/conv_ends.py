"""Avoid padding: outputs near the ends of a padded axis get fewer taps than the others."""

from collections.abc import Sequence

import numpy as np

from pulse.ops.conv import Conv, is_depthwise
from pulse.program.table.memory import TensorView
from pulse.support.record import record

INSTRUCTION_COST = 512
"""The elements of a padded copy that cost as much as another instruction with no more weights than these."""


@record
class Piece:
    """Outputs ``start … stop - 1`` along an axis, which have the same taps; ``before``: the zeros before the axis."""

    axis: int
    start: int
    stop: int
    before: int
    taps: range


def pieces_at_ends(
    op: Conv, kernel: Sequence[int], x: TensorView, sizes: Sequence[int], pads: Sequence[tuple[int, int]]
) -> list[Piece] | None:
    """Group the outputs by their taps, if one axis is padded and few instructions suffice; else None."""
    padded = [i for i, pair in enumerate(pads) if any(pair)]
    if len(padded) != 1:
        return None
    i = padded[0]
    axis, (before, _), dilation = i + 2, pads[i], op.dilations[i]
    pieces: list[Piece] = []
    for u in range(sizes[axis]):
        first = u * op.strides[i] - before
        begin = max(0, -(first // dilation))
        taps = range(begin, max(begin, min(kernel[axis], -(-(x.shape[axis] - first) // dilation))))
        if pieces and pieces[-1].taps == taps:
            pieces[-1] = Piece(axis, pieces[-1].start, u + 1, before, taps)
        else:
            pieces.append(Piece(axis, u, u + 1, before, taps))
    products = 1 if is_depthwise(op, kernel) else op.group
    weights = int(np.prod(kernel)) // (products * kernel[axis])
    largest = max(pieces, key=lambda piece: piece.stop - piece.start, default=None)
    further = sum(
        max(INSTRUCTION_COST, weights * len(piece.taps)) for piece in pieces if piece is not largest
    )
    return pieces if x.size >= products * further and all(piece.taps for piece in pieces) else None
