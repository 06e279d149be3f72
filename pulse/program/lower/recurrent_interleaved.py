"""GRUs and LSTMs for sixteen streams with interleaved memories."""

from collections.abc import Iterator

import numpy as np

from pulse.facts import Array
from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaving import InterleavedLowering, NotInterleavedError, interleaves
from pulse.program.kernels.recurrent import RecurrentFields
from pulse.program.kernels.recurrent_gru import GruRow
from pulse.program.kernels.recurrent_gru_small import GruEightsRow, GruFoursRow, SmallGruFields
from pulse.program.kernels.recurrent_interleaved import InterleavedGruRow, gates_by_unit, small_gates_by_unit
from pulse.program.kernels.recurrent_interleaved_lstm import InterleavedLstmRow, four_gates_by_unit
from pulse.program.kernels.recurrent_lstm import LstmRow
from pulse.program.table.loops import Loops


def _from_the_state(cx: InterleavedLowering, row: RecurrentFields) -> Iterator[Instruction]:
    """Require the frames before the stream to have passed; load the state of a sequence that restarts."""
    if cx.is_clock(row.clock):
        cx.require_endless(row.end)
        cx.require_past(row.offset, row.T)
        return
    if row.offset or int(cx.constant(row.end).ravel()[0]) < row.T:
        raise NotInterleavedError("a sequence that is not whole")
    if row.reload:
        yield from cx.copy(cx.data(row.h0), cx.data(row.h), _rows(row, row.step_h0))


def _rows(row: RecurrentFields, step: int) -> Loops:
    """Return the loops over the rows of an initial state and of the state."""
    return Loops((row.B, row.H), ((step, 1), (row.H, 1)))


def _recurrence(
    cx: InterleavedLowering, row: GruRow | SmallGruFields, weights: Array, step_x: int, backwards: int
) -> Iterator[Instruction]:
    yield from _from_the_state(cx, row)
    count, units = weights.shape[:2]
    yield InterleavedGruRow(
        y=cx.data(row.y),
        h=cx.data(row.h),
        x=cx.data(row.x),
        W=cx.table(weights),
        bias=cx.table(np.ascontiguousarray(cx.constant(row.bias).ravel()[: count * units])),
        count=count,
        step_x=step_x,
        backwards=backwards,
        units=units,
        T=row.T,
        B=row.B,
        H=row.H,
        frame=row.frame,
        step=row.step,
        clip=row.clip,
        f=row.f,
        g=row.g,
    )


@interleaves(GruRow)
def interleave_gru(cx: InterleavedLowering, row: GruRow) -> Iterator[Instruction]:
    """Compute unit by unit; a vector holds one unit of all streams."""
    if row.form != "f32" or row.reverse:
        raise NotInterleavedError("a layer backwards in time, or weights that are not f32")
    return _recurrence(cx, row, gates_by_unit(cx.constant(row.W).ravel(), row.H), 0, 0)


@interleaves(GruFoursRow, GruEightsRow)
def interleave_small_grus(cx: InterleavedLowering, row: SmallGruFields) -> Iterator[Instruction]:
    """Compute the frames of all GRUs in turn, unit by unit: few units would wait for their previous frame."""
    weights = small_gates_by_unit(cx.constant(row.W).ravel(), row.width)[: row.count]
    return _recurrence(cx, row, np.ascontiguousarray(weights), row.step_x, row.backwards)


@interleaves(LstmRow)
def interleave_lstm(cx: InterleavedLowering, row: LstmRow) -> Iterator[Instruction]:
    """Compute unit by unit; a vector holds one unit of all streams."""
    if row.form != "f32" or row.reverse:
        raise NotInterleavedError("a layer backwards in time, or weights that are not f32")
    yield from _from_the_state(cx, row)
    if row.reload and not cx.is_clock(row.clock):
        yield from cx.copy(cx.data(row.c0), cx.data(row.c), _rows(row, row.step_c0))
    yield InterleavedLstmRow(
        y=cx.data(row.y),
        h=cx.data(row.h),
        c=cx.data(row.c),
        x=cx.data(row.x),
        W=cx.table(four_gates_by_unit(cx.constant(row.W).ravel(), row.H)),
        peepholes=cx.share(row.peepholes),
        T=row.T,
        B=row.B,
        H=row.H,
        frame=row.frame,
        step=row.step,
        couples=row.couples,
        clip=row.clip,
        f=row.f,
        g=row.g,
        out=row.out,
    )
