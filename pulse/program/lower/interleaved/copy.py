"""Fills and copies for sixteen streams with interleaved memories."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.copy import CopyRow, FillRow, MoveRow, PairedCopyRow
from pulse.program.lower.interleaved.lowering import (
    LANE_WORD,
    InterleavedLowering,
    NotInterleavedError,
    advance,
    count_words,
    interleaves,
)
from pulse.program.table.emitted import EmittedInstruction
from pulse.program.table.loops import Loops

MAX_GAPS = 32
"""Maximum number of runs of a fill that are filled one by one, if the next copy writes the rest."""


@interleaves(CopyRow)
def interleave_copy(lowering: InterleavedLowering, row: CopyRow) -> Iterator[Instruction]:
    """Add a loop over the streams."""
    words = count_words(row.size)
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
    yield move_words(lowering, row.src, row.dst, count_words(row.bytes))


def move_words(lowering: InterleavedLowering, source: Any, target: Any, words: int) -> MoveRow:
    """Return the instruction that moves this many words of each stream."""
    return MoveRow(dst=lowering.data(target), src=lowering.data(source), bytes=words * LANE_WORD * LANES)


@interleaves(PairedCopyRow)
def interleave_paired_copy(lowering: InterleavedLowering, row: PairedCopyRow) -> Iterator[Instruction]:
    """Copy the words of one tensor, then of the other."""
    for index, (source, step) in enumerate(((row.src0, row.step0), (row.src1, row.step1))):
        loops = Loops((row.rows, row.columns), ((step, 1), (row.step, 2)))
        yield from lowering.copy(lowering.data(source), lowering.data(row.dst, index), loops)


def trim_fills(rows: Sequence[EmittedInstruction]) -> Iterator[EmittedInstruction]:
    """Reduce each fill to the runs that the next copy does not write, if these are few."""
    for row, next_row in zip(rows, (*rows[1:], None)):
        fill, copy = row.instruction, None if next_row is None else next_row.instruction
        if not isinstance(fill, FillRow) or not isinstance(copy, CopyRow):
            yield row
            continue
        target: Any = fill.dst
        gaps = find_gaps(fill, copy)
        for start, stop in gaps if len(gaps) <= MAX_GAPS else [(0, fill.count)]:
            part = advance(target, start)
            yield EmittedInstruction(
                FillRow(dst=part, size=fill.size, count=stop - start, bits=fill.bits), row.node, row.op
            )


def find_gaps(fill: FillRow, copy: CopyRow) -> list[tuple[int, int]]:
    """Return the runs of a fill that a copy does not write, in elements of the fill."""
    first: Any = fill.dst
    source: Any = copy.src
    target: Any = copy.dst
    if fill.size != copy.size or target.buffer is not first.buffer or source.buffer is first.buffer:
        return [(0, fill.count)]
    sizes = (copy.n0, copy.n1, copy.n2, copy.n3, copy.n4, copy.n5)
    strides = (copy.b0, copy.b1, copy.b2, copy.b3, copy.b4, copy.b5)
    offsets = np.array([target.offset - first.offset])
    for size, stride in zip(sizes, strides):
        offsets = (offsets[:, None] + np.arange(size) * stride).ravel()
    empty = np.ones(fill.count + 2, np.bool_)
    empty[[0, -1]] = False
    written = offsets[(offsets >= 0) & (offsets < fill.count)]
    empty[written + 1] = False
    edges = np.flatnonzero(empty[1:] != empty[:-1])
    return list(zip(edges[::2].tolist(), edges[1::2].tolist()))
