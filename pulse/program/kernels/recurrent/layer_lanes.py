"""Recurrent layers for several streams: 16 units of four streams at a time, so that four share one read of the weights.

A frame outside one stream but inside another is skipped for the former.
"""

from collections.abc import Callable
from operator import add
from typing import Any

from pulse.jit.lane_bases import MAX_STACK_LANES, lane, lane_count
from pulse.jit.language.simd import LANES
from pulse.jit.language.stack import stack_f32, stack_i64
from pulse.jit.language.tuples import each
from pulse.jit.registers import HAS_AVX512
from pulse.jit.registry import device, lanes_kernel
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.scales import offset_scales
from pulse.program.kernels.recurrent.gates import (
    STATES_PER_GROUP,
    SUM_FLOATS,
    finish_gru,
    finish_lstm,
    load_sums,
    store_sums,
)
from pulse.program.kernels.recurrent.gru import GruRow, gru
from pulse.program.kernels.recurrent.layer import (
    RecurrentFloatFields,
    copy_state_rows,
    load_activations,
    prepare_frames,
)
from pulse.program.kernels.recurrent.lstm import LstmRow, load_lstm_activations, load_memory, lstm
from pulse.program.kernels.row_tuples import EIGHT, FOUR, THREE, Indices, Vectors

SUM_FLOATS_OF_EIGHT = 2 * SUM_FLOATS
"""The floats that hold the sums of eight states."""
GRUS_TOGETHER = EIGHT if HAS_AVX512 else FOUR
"""The GRUs that share one reading of the weights."""
LANE_SCRATCH_WORDS = 3 * MAX_STACK_LANES
"""The first frame of each lane, the frame after its last one; then the lanes that have a frame."""


@device
def prepare_lane_frames(row: RecurrentFloatFields, count: int, lanes: Pointer) -> None:
    """Run ``prepare_frames`` for each lane l; write its range to ``lanes[l]`` and ``lanes[MAX_STACK_LANES + l]``."""
    for l in range(count):
        start, stop = prepare_frames(lane(row, l))
        lanes[l] = start
        lanes[MAX_STACK_LANES + l] = stop


@device
def find_lanes_with_frame(lanes: Pointer, count: int, frame: int) -> int:
    """Write the numbers of the lanes that have this frame to ``lanes[2 * MAX_STACK_LANES + i]``; return their count."""
    active = 0
    for l in range(count):
        if lanes[l] <= frame < lanes[MAX_STACK_LANES + l]:
            lanes[2 * MAX_STACK_LANES + active] = l
            active += 1
    return active


@device
def nth_lane(lanes: Pointer, active: int, i: int) -> int:
    """Return the i-th lane that has the frame; after the last, the last one."""
    return lanes[2 * MAX_STACK_LANES + min(i, active - 1)]


@device
def state_of(
    row: RecurrentFloatFields, lanes: Pointer, active: int, j: int, i: int, new: int, back: int, h_offset: int
) -> Pointer:
    """Return the address of the state before frame i of ``nth_lane`` j: the previous output, or h."""
    l = nth_lane(lanes, active, j)
    if i > lanes[l]:
        return lane(row, l).y + (new + back)
    return lane(row, l).h + h_offset


@device
def store_lane_states(row: RecurrentFloatFields, count: int, lanes: Pointer) -> None:
    T, B, H, frame, step = row.T, row.B, row.H, row.step_frame, row.step_row
    for l in range(count):
        start, stop = lanes[l], lanes[MAX_STACK_LANES + l]
        if start < stop:
            last = T - stop if row.reverse else stop - 1
            stream = lane(row, l)
            copy_state_rows(stream.h, stream.y + last * frame, B, H, step)


@device
def run_lanes(
    row: RecurrentFloatFields, gates: Indices, together: Indices, scratch: tuple[Pointer, Pointer],
    finish: Callable[..., None], parameters: Any,
) -> None:  # fmt: skip
    """Compute all frames of several streams; four of them, or as many as ``together``, share one read of the weights.

    ``finish(stream, x, h, y, (b, n, H), sums, parameters)`` computes the units n … n + 15 of sequence b from the sums
    of the gates.
    """
    (lanes, sums), w, scales = scratch, row.W, row.scales
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    back, G = frame if reverse else -frame, len(gates)
    left, group = lane_count(row), row
    while left > 0:
        count = min(left, MAX_STACK_LANES)
        prepare_lane_frames(group, count, lanes)
        for i in range(T):
            t, active = T - 1 - i if reverse else i, find_lanes_with_frame(lanes, count, i)
            for n in range(0, H, LANES):
                p, s = w + G * n * H, offset_scales(scales, G * n)
                for b in range(B):
                    new, x_offset, first = t * frame + b * step, (t * B + b) * G * H, 0
                    while first < active:
                        if len(together) > STATES_PER_GROUP and first + STATES_PER_GROUP < active:
                            numbers = each(add, first, together)
                            states = each(state_of, group, lanes, active, numbers, i, new, back, b * H)
                            store_sums(states, p, H, s, sums, gates)
                            stop = min(first + len(together), active)
                        else:
                            four = each(add, first, FOUR)
                            states_of_four = each(state_of, group, lanes, active, four, i, new, back, b * H)
                            store_sums(states_of_four, p, H, s, sums, gates)
                            stop = min(first + STATES_PER_GROUP, active)
                        for j in range(stop - first):
                            stream = lane(group, nth_lane(lanes, active, first + j))
                            h = state_of(group, lanes, active, first + j, i, new, back, b * H)
                            x, y, totals = stream.x + x_offset, stream.y + new, load_sums(sums, j, gates)
                            finish(stream, x, h, y, (b, n, H), totals, parameters)
                        first = stop
        store_lane_states(group, count, lanes)
        left -= count
        group = lane(group, count)


@device
def finish_gru_lane(
    _: GruRow, x: Pointer, h: Pointer, y: Pointer, place: Indices, sums: Vectors, parameters: Any
) -> None:
    (_b, n, H), (bias, cell) = place, parameters
    finish_gru(x, h, bias, y, n, H, sums, cell)


@lanes_kernel(gru)
def gru_lanes(row: GruRow) -> None:
    scratch = stack_i64(LANE_SCRATCH_WORDS), stack_f32(SUM_FLOATS_OF_EIGHT)
    run_lanes(row, THREE, GRUS_TOGETHER, scratch, finish_gru_lane, (row.bias, load_activations(row)))


@device
def finish_lstm_lane(
    stream: LstmRow, x: Pointer, _: Pointer, y: Pointer, place: Indices, sums: Vectors, parameters: Any
) -> None:
    (b, n, H), (peepholes, couples, cell) = place, parameters
    finish_lstm(x, stream.c + b * H, peepholes, y, n, H, couples, sums, cell)


@lanes_kernel(lstm)
def lstm_lanes(row: LstmRow) -> None:
    for l in range(lane_count(row)):
        load_memory(lane(row, l))
    scratch = stack_i64(LANE_SCRATCH_WORDS), stack_f32(SUM_FLOATS)
    parameters = row.peepholes, row.couples, load_lstm_activations(row)
    run_lanes(row, FOUR, FOUR, scratch, finish_lstm_lane, parameters)
