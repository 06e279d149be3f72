"""Recurrent layers for several streams: 16 units of four streams at a time, so that four share one read of the weights.

A frame outside one stream but inside another is skipped for the former.
"""

from operator import add

from pulse.jit.lane_bases import MAX_STACK_LANES, lane, lane_count
from pulse.jit.language.simd import LANES, vload
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
    store_sums,
)
from pulse.program.kernels.recurrent.gru import GruRow, gru
from pulse.program.kernels.recurrent.layer import (
    RecurrentFloatFields,
    copy_state_rows,
    load_activation,
    prepare_frames,
)
from pulse.program.kernels.recurrent.lstm import LstmRow, load_cell, lstm
from pulse.program.kernels.row_tuples import EIGHT, FOUR, THREE

SUM_FLOATS_OF_EIGHT = 2 * SUM_FLOATS
"""The floats that hold the sums of eight states."""
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
    """Copy the last output of each lane to its h."""
    T, B, H, frame, step = row.T, row.B, row.H, row.step_frame, row.step_row
    for l in range(count):
        start, stop = lanes[l], lanes[MAX_STACK_LANES + l]
        if start < stop:
            last = T - stop if row.reverse else stop - 1
            stream = lane(row, l)
            copy_state_rows(stream.h, stream.y + last * frame, B, H, step)


@lanes_kernel(gru)
def gru_lanes(row: GruRow) -> None:
    """Compute all frames of several streams."""
    lanes, sums, w, scales, bias = (
        stack_i64(LANE_SCRATCH_WORDS),
        stack_f32(SUM_FLOATS_OF_EIGHT),
        row.W,
        row.scales,
        row.bias,
    )
    f, g = load_activation(row.f), load_activation(row.g)
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    back = frame if reverse else -frame
    left, group = lane_count(row), row
    while left > 0:
        count = min(left, MAX_STACK_LANES)
        prepare_lane_frames(group, count, lanes)
        for i in range(T):
            t, active = T - 1 - i if reverse else i, find_lanes_with_frame(lanes, count, i)
            for n in range(0, H, LANES):
                s = offset_scales(scales, 3 * n)
                for b in range(B):
                    new, x_offset = t * frame + b * step, (t * B + b) * 3 * H
                    first = 0
                    while first < active:
                        if HAS_AVX512 and first + STATES_PER_GROUP < active:
                            group_of_eight = each(add, first, EIGHT)
                            eight = each(state_of, group, lanes, active, group_of_eight, i, new, back, b * H)
                            store_sums(eight, w + 3 * n * H, H, s, sums, THREE)
                            stop = min(first + 2 * STATES_PER_GROUP, active)
                        else:
                            group_of_four = each(add, first, FOUR)
                            four = each(state_of, group, lanes, active, group_of_four, i, new, back, b * H)
                            store_sums(four, w + 3 * n * H, H, s, sums, THREE)
                            stop = min(first + STATES_PER_GROUP, active)
                        for j in range(stop - first):
                            stream = lane(group, nth_lane(lanes, active, first + j))
                            x, y = stream.x + x_offset, stream.y + new
                            h = state_of(group, lanes, active, first + j, i, new, back, b * H)
                            z, r = vload(sums, 64 * j), vload(sums, 64 * j + 16)
                            candidate = vload(sums, 64 * j + 32)
                            finish_gru(
                                x, h, bias, y, n, H, z, r, candidate,
                                f, g, clip,
                            )  # fmt: skip
                        first = stop
        store_lane_states(group, count, lanes)
        left -= count
        group = lane(group, count)


@lanes_kernel(lstm)
def lstm_lanes(row: LstmRow) -> None:
    """Compute all frames of several streams."""
    lanes, sums, w, scales = stack_i64(LANE_SCRATCH_WORDS), stack_f32(SUM_FLOATS), row.W, row.scales
    f, g, out, peepholes = (
        load_activation(row.f),
        load_activation(row.g),
        load_activation(row.out),
        row.peepholes,
    )
    couples = row.couples
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    back = frame if reverse else -frame
    left, group = lane_count(row), row
    while left > 0:
        count = min(left, MAX_STACK_LANES)
        for l in range(count):
            load_cell(lane(group, l))
        prepare_lane_frames(group, count, lanes)
        for i in range(T):
            t, active = T - 1 - i if reverse else i, find_lanes_with_frame(lanes, count, i)
            for n in range(0, H, LANES):
                s = offset_scales(scales, 4 * n)
                for b in range(B):
                    new, x_offset = t * frame + b * step, (t * B + b) * 4 * H
                    for first in range(0, active, STATES_PER_GROUP):
                        numbers = each(add, first, FOUR)
                        states = each(state_of, group, lanes, active, numbers, i, new, back, b * H)
                        store_sums(states, w + 4 * n * H, H, s, sums, FOUR)
                        for j in range(min(STATES_PER_GROUP, active - first)):
                            stream = lane(group, nth_lane(lanes, active, first + j))
                            x, y = stream.x + x_offset, stream.y + new
                            input_gate, o = vload(sums, 64 * j), vload(sums, 64 * j + 16)
                            forget, candidate = vload(sums, 64 * j + 32), vload(sums, 64 * j + 48)
                            finish_lstm(
                                x, stream.c + b * H, peepholes, y, n, H, couples, input_gate, o, forget, candidate,
                                f, g, out, clip,
                            )  # fmt: skip
        store_lane_states(group, count, lanes)
        left -= count
        group = lane(group, count)
