"""Instructions for sixteen streams with interleaved memories: a vector holds one element of each stream.

A word of four bytes of a stream's state or arena becomes sixteen words, one of each stream. So an instruction runs
once for all streams with full vectors, even for small tensors.

The instructions are valid in the middle of a stream: every frame of a pulse belongs to its stream, and no initial
state is loaded. A stream before pulse ``steady_from``, or after its end, runs by itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaving import (
    WORD,
    InterleavedLowering,
    NotInterleavedError,
    byte_of,
    dense,
    further_on,
)
from pulse.program.kernels.copy import CopyRow, FillRow
from pulse.program.kernels.time import TickRow
from pulse.program.lower import attention_interleaved as attention_interleaved
from pulse.program.lower import conv_interleaved as conv_interleaved
from pulse.program.lower import copy_interleaved as copy_interleaved
from pulse.program.lower import elementwise_interleaved as elementwise_interleaved
from pulse.program.lower import matmul_interleaved as matmul_interleaved
from pulse.program.lower import norm_interleaved as norm_interleaved
from pulse.program.lower import pool_interleaved as pool_interleaved
from pulse.program.lower import recurrent_interleaved as recurrent_interleaved
from pulse.program.lower import reduce_interleaved as reduce_interleaved
from pulse.program.lower import scan_interleaved as scan_interleaved
from pulse.program.lower import spectral_interleaved as spectral_interleaved
from pulse.program.lower import time_interleaved as time_interleaved
from pulse.program.native.executable import NativeExecutable
from pulse.program.native.sliding_windows import SlidingWindows, slide
from pulse.program.table.emitted import Emitted
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Buffer, Region, Value, align
from pulse.program.table.place import Place
from pulse.support.record import record

MAX_GAPS = 32
"""The most runs of a fill that are filled one by one, if the next copy writes the rest."""


@record
class Interleaved:
    """The interleaved instructions, their weights, and the pulse from which on they are valid.

    steady_from  the pulses of a stream after which they are valid
    clock_at     the byte offset of the pulse counter in a stream's state, which the instructions do not change
    inputs       for each input the byte offset in the arena of the sixteen streams' tensors, one after another
    outputs      the same for the outputs
    sliding      the delays that are not in the interleaved state while the streams step
    """

    rows: tuple[Emitted, ...]
    weights: Array
    steady_from: int
    clock_at: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arena_bytes: int
    sliding: SlidingWindows


class Exchange:
    """Memory after the interleaved arena, for contiguous tensors of each of sixteen streams."""

    def __init__(self, cx: InterleavedLowering, arena_bytes: int) -> None:
        self._cx = cx
        self.end = align(arena_bytes * LANES)

    def add(self, place: Place, incoming: bool) -> tuple[int, list[Instruction]]:
        """Allocate a tensor; return its offset and the copies to the interleaved memory or back."""
        if place.region is Region.WEIGHTS or place.dtype.itemsize != WORD:
            raise NotInterleavedError("an input or output of another size than a word, or constant")
        size = prod(place.shape)
        at = self._allocate(size)
        outside = _words(Region.ARENA, at, size * LANES)
        inner = _words(place.region, place.offset * LANES, size * LANES)
        steps = tuple(step // WORD * LANES for step in place.strides)
        alone = dense(place.shape)
        if incoming:
            loops = Loops((*place.shape, LANES), ((*alone, size), (*steps, 1)))
            return at, list(self._cx.copy_words(outside, inner, loops))
        copies: list[Instruction] = []
        beside = tuple(step * LANES for step in alone)
        if len(Loops(place.shape, (steps, beside)).merge().sizes) > 1:  # first in the order of the tensor
            ordered = _words(Region.ARENA, self._allocate(size), size * LANES)
            loops = Loops((*place.shape, LANES), ((*steps, 1), (*beside, 1)))
            copies += self._cx.copy_words(inner, ordered, loops)
            inner, steps = ordered, beside
        loops = Loops((LANES, *place.shape), ((1, *steps), (size, *alone)))
        return at, [*copies, *self._cx.copy_words(inner, outside, loops)]

    def _allocate(self, size: int) -> int:
        """Return the offset of new memory for a tensor of ``size`` words."""
        at, self.end = self.end, self.end + align(size * WORD * LANES)
        return at


def _words(region: Region, at: int, count: int) -> Value:
    """Return a tensor of words from a byte on."""
    return Value(Buffer(region, count * WORD, at), 0, (count,), (1,), np.dtype(np.float32))


def interleave(program: NativeExecutable) -> Interleaved:
    """Convert the instructions for sixteen streams.

    Raises NotInterleavedError: they are unknown, or one cannot be converted
    """
    rows = program.emitted_instructions
    ticks = [row.instruction for row in rows if isinstance(row.instruction, TickRow)]
    if not rows:
        raise NotInterleavedError("its file has no instructions, only compiled rows")
    if len(ticks) != 1:
        raise NotInterleavedError(f"it has {len(ticks)} clocks")
    (tick,) = ticks
    clock: Any = tick.clock
    sliding = slide(rows, [place for _, place in (*program.received, *program.sent)])
    cx = InterleavedLowering(program.weights, clock, sliding.place_of)
    exchange = Exchange(cx, program.arena_bytes)
    entries = [exchange.add(place, True) for _, place in program.received]
    middle = [
        Emitted(instruction, row.node, row.op)
        for row in with_gaps_only(rows)
        if row.instruction is not tick and row.instruction not in sliding.moves
        for instruction in _convert(cx, row)
    ]
    exits = [exchange.add(place, False) for _, place in program.sent]
    begin = [Emitted(copy, "", "input") for _, copies in entries for copy in copies]
    end = [Emitted(copy, "", "output") for _, copies in exits for copy in copies]
    return Interleaved(
        rows=(*begin, *middle, *end),
        weights=cx.image.image(),
        steady_from=cx.steady_from,
        clock_at=byte_of(clock),
        inputs=tuple(at for at, _ in entries),
        outputs=tuple(at for at, _ in exits),
        arena_bytes=exchange.end,
        sliding=sliding,
    )


def _convert(cx: InterleavedLowering, row: Emitted) -> Iterable[Instruction]:
    """Return the interleaved instructions for one row. Raises NotInterleavedError, which names the node."""
    try:
        return tuple(cx.convert(row.instruction))
    except NotInterleavedError as error:
        raise NotInterleavedError(f"{row.node or row.kernel}: {error}") from None


def with_gaps_only(rows: Sequence[Emitted]) -> Iterator[Emitted]:
    """Reduce each fill to the runs that the next copy does not write, if they are few."""
    for row, behind in zip(rows, (*rows[1:], None)):
        fill, copy = row.instruction, None if behind is None else behind.instruction
        if not isinstance(fill, FillRow) or not isinstance(copy, CopyRow):
            yield row
            continue
        target: Any = fill.dst
        gaps = gaps_of(fill, copy)
        for start, stop in gaps if len(gaps) <= MAX_GAPS else [(0, fill.count)]:
            part = further_on(target, start)
            yield Emitted(
                FillRow(dst=part, size=fill.size, count=stop - start, bits=fill.bits), row.node, row.op
            )


def gaps_of(fill: FillRow, copy: CopyRow) -> list[tuple[int, int]]:
    """Return the runs of a fill that a copy does not write, in elements of the fill."""
    first: Any = fill.dst
    source: Any = copy.src
    target: Any = copy.dst
    if fill.size != copy.size or target.buffer is not first.buffer or source.buffer is first.buffer:
        return [(0, fill.count)]
    sizes = (copy.n0, copy.n1, copy.n2, copy.n3, copy.n4, copy.n5)
    strides = (copy.b0, copy.b1, copy.b2, copy.b3, copy.b4, copy.b5)
    places = np.array([target.offset - first.offset])
    for size, stride in zip(sizes, strides):
        places = (places[:, None] + np.arange(size) * stride).ravel()
    empty = np.ones(fill.count + 2, np.bool_)
    empty[[0, -1]] = False
    inside = places[(places >= 0) & (places < fill.count)]
    empty[inside + 1] = False
    edges = np.flatnonzero(empty[1:] != empty[:-1])
    return list(zip(edges[::2].tolist(), edges[1::2].tolist()))
