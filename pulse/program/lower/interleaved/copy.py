"""Copies for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.copy import CopyRow, FillRow, MoveRow, PairedCopyRow
from pulse.program.lower.interleaved.lowering import (
    LANE_WORD,
    InterleavedLowering,
    NotInterleavedError,
    interleaves,
)
from pulse.program.table.loops import Loops


@interleaves(CopyRow)
def interleave_copy(lowering: InterleavedLowering, row: CopyRow) -> Iterator[Instruction]:
    """Add a loop over the streams."""
    if row.size % LANE_WORD:
        raise NotInterleavedError("elements smaller than a word")
    words = row.size // LANE_WORD
    sizes = (row.n0, row.n1, row.n2, row.n3, row.n4, row.n5, words)
    a = (row.a0, row.a1, row.a2, row.a3, row.a4, row.a5)
    b = (row.b0, row.b1, row.b2, row.b3, row.b4, row.b5)
    strides = tuple((*(step * words for step in steps), 1) for steps in (a, b))
    return lowering.copy(lowering.data(row.src), lowering.data(row.dst), Loops(sizes, strides))


@interleaves(FillRow)
def interleave_fill(lowering: InterleavedLowering, row: FillRow) -> Iterator[Instruction]:
    """Fill sixteen times as many words."""
    if row.size != LANE_WORD and (row.bits or row.size % LANE_WORD):
        raise NotInterleavedError("elements that are not one word")
    count = row.count * row.size // LANE_WORD * LANES
    yield FillRow(dst=lowering.data(row.dst), size=LANE_WORD, count=count, bits=row.bits)


@interleaves(MoveRow)
def interleave_move(lowering: InterleavedLowering, row: MoveRow) -> Iterator[Instruction]:
    """Move sixteen times as many bytes."""
    if row.bytes % LANE_WORD:
        raise NotInterleavedError("elements smaller than a word")
    yield MoveRow(dst=lowering.data(row.dst), src=lowering.data(row.src), bytes=row.bytes * LANES)


@interleaves(PairedCopyRow)
def interleave_paired_copy(lowering: InterleavedLowering, row: PairedCopyRow) -> Iterator[Instruction]:
    """Copy the words of one tensor, then of the other."""
    for index, (source, step) in enumerate(((row.src0, row.step0), (row.src1, row.step1))):
        loops = Loops((row.rows, row.columns), ((step, 1), (row.step, 2)))
        yield from lowering.copy(lowering.data(source), lowering.data(row.dst, index), loops)
