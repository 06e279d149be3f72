"""GRUs and LSTMs for sixteen streams with interleaved memories."""

from collections.abc import Iterator

import numpy as np

from pulse.facts import Array
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.recurrent.gru import GruRow
from pulse.program.kernels.recurrent.gru_interleaved import (
    InterleavedGruRow,
    gates_by_unit,
    small_gates_by_unit,
)
from pulse.program.kernels.recurrent.gru_small import GruEightsRow, GruFoursRow, SmallGruFields
from pulse.program.kernels.recurrent.layer import RecurrentFields
from pulse.program.kernels.recurrent.lstm import LstmRow
from pulse.program.kernels.recurrent.lstm_interleaved import InterleavedLstmRow, four_gates_by_unit
from pulse.program.lower.interleaved.lowering import InterleavedLowering, NotInterleavedError, interleaves
from pulse.program.table.loops import Loops


def _begin_layer(lowering: InterleavedLowering, row: RecurrentFields) -> Iterator[Instruction]:
    """Require the frames before the stream to have passed; load the state of a sequence that restarts."""
    if lowering.is_clock(row.clock):
        lowering.require_endless(row.end)
        lowering.require_past(row.offset, row.T)
        return
    if row.offset or int(lowering.read_constant(row.end).ravel()[0]) < row.T:
        raise NotInterleavedError("a sequence that is not whole")
    if row.reload:
        yield from lowering.copy(
            lowering.data(row.h0), lowering.data(row.h), _state_loops(row, row.step_h0_row)
        )


def _state_loops(row: RecurrentFields, step: int) -> Loops:
    """Return the loops over the rows of an initial state and of the state."""
    return Loops((row.B, row.H), ((step, 1), (row.H, 1)))


def _emit_recurrence(
    lowering: InterleavedLowering, row: GruRow | SmallGruFields, weights: Array, step_x: int, backwards: int
) -> Iterator[Instruction]:
    """Emit one or several GRUs with weights [count, units, units, 3]."""
    yield from _begin_layer(lowering, row)
    count, units = weights.shape[:2]
    yield lowering.row_like(
        row,
        InterleavedGruRow,
        W=lowering.add_table(weights),
        bias=lowering.add_table(
            np.ascontiguousarray(lowering.read_constant(row.bias).ravel()[: count * units])
        ),
        count=count,
        step_x=step_x,
        backwards=backwards,
        units=units,
    )


@interleaves(GruRow)
def interleave_gru(lowering: InterleavedLowering, row: GruRow) -> Iterator[Instruction]:
    """Compute unit by unit; a vector holds one unit of all streams."""
    if row.form != "f32" or row.reverse:
        raise NotInterleavedError("a layer that runs backwards in time, or weights that are not f32")
    return _emit_recurrence(lowering, row, gates_by_unit(lowering.read_constant(row.W).ravel(), row.H), 0, 0)


@interleaves(GruFoursRow, GruEightsRow)
def interleave_small_grus(lowering: InterleavedLowering, row: SmallGruFields) -> Iterator[Instruction]:
    """Compute the frames of all GRUs in turn, unit by unit: few units would wait for their previous frame."""
    weights = small_gates_by_unit(lowering.read_constant(row.W).ravel(), row.width)[: row.count]
    return _emit_recurrence(lowering, row, np.ascontiguousarray(weights), row.step_x, row.backwards)


@interleaves(LstmRow)
def interleave_lstm(lowering: InterleavedLowering, row: LstmRow) -> Iterator[Instruction]:
    """Compute unit by unit; a vector holds one unit of all streams."""
    if row.form != "f32" or row.reverse:
        raise NotInterleavedError("a layer that runs backwards in time, or weights that are not f32")
    yield from _begin_layer(lowering, row)
    if row.reload and not lowering.is_clock(row.clock):
        yield from lowering.copy(
            lowering.data(row.c0), lowering.data(row.c), _state_loops(row, row.step_c0_row)
        )
    weights = lowering.add_table(four_gates_by_unit(lowering.read_constant(row.W).ravel(), row.H))
    yield lowering.row_like(row, InterleavedLstmRow, ("peepholes",), W=weights)
