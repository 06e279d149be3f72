"""Recurrent layers of several streams: 16 units of four of them at a time, so the weights are read once for four.

Frames that lie outside of one stream and inside of another are skipped for the first.
"""

from pulse.program.kernels.gates import (
    GROUP,
    SUMS,
    finish_gru,
    finish_lstm,
    four_sums_of_four,
    three_sums_of_four,
)
from pulse.program.kernels.gru import gru, gru_bf16, gru_int8
from pulse.program.kernels.lanes import CHUNK, lane, lane_count
from pulse.program.kernels.lstm import lstm, lstm_bf16, lstm_int8
from pulse.program.kernels.pointer import Bases, Pointer, Row, bf16, f32, i8, i64, number, real
from pulse.program.kernels.recurrent import begun, take_rows
from pulse.program.kernels.registry import device, lanes_of
from pulse.program.kernels.scales import Scales, further
from pulse.program.kernels.simd import LANES, vload
from pulse.program.kernels.stack import stack_f32, stack_i64

PLACES = 3 * CHUNK  # of each lane the first frame, the frame behind its last one; then the lanes of one frame


@device
def prepared(row: Row, bases: Bases, count: int, places: Pointer) -> None:
    """``begun`` for each lane; first frames to ``places[l]``, those behind the last to ``places[CHUNK + l]``."""
    for l in range(count):
        start, stop = begun(row, lane(bases, l))
        places[l] = start
        places[CHUNK + l] = stop


@device
def inside(places: Pointer, count: int, frame: int) -> int:
    """How many lanes have this frame; their numbers to ``places[2 * CHUNK + i]``."""
    found = 0
    for l in range(count):
        if places[l] <= frame < places[CHUNK + l]:
            places[2 * CHUNK + found] = l
            found += 1
    return found


@device
def member(places: Pointer, found: int, i: int) -> int:
    """The lane number i of those inside; past the last, the last one again."""
    return places[2 * CHUNK + min(i, found - 1)]


@device
def state_of(
    row: Row, bases: Bases, places: Pointer, l: int, i: int, new: int, back: int, at_h: int
) -> Pointer:
    """Where the state before frame i of lane l is: the output of the frame before, or h."""
    if i > places[l]:
        return f32(row, lane(bases, l), 2) + (new + back)
    return f32(row, lane(bases, l), 3) + at_h


@device
def kept(row: Row, bases: Bases, count: int, places: Pointer) -> None:
    """The last output of each lane to its h."""
    T, B, H, frame, step = number(row, 8), number(row, 9), number(row, 10), number(row, 12), number(row, 13)
    for l in range(count):
        start, stop = places[l], places[CHUNK + l]
        if start < stop:
            last = T - stop if number(row, 14) else stop - 1
            one = lane(bases, l)
            take_rows(f32(row, one, 3), f32(row, one, 2) + last * frame, B, H, step)


@device
def run_gru_lanes(row: Row, bases: Bases, w: Pointer, scales: Scales) -> None:
    """All frames of several streams."""
    places, sums = stack_i64(PLACES), stack_f32(SUMS)
    T, B, H = number(row, 8), number(row, 9), number(row, 10)
    frame, step, reverse, clip = number(row, 12), number(row, 13), number(row, 14), real(row, 16)
    code0, alpha0, beta0 = number(row, 17), real(row, 18), real(row, 19)
    code1, alpha1, beta1 = number(row, 20), real(row, 21), real(row, 22)
    bias, back = f32(row, bases, 23), frame if reverse else -frame
    left, group = lane_count(bases), bases
    while left > 0:
        count = min(left, CHUNK)
        prepared(row, group, count, places)
        for i in range(T):
            t, found = T - 1 - i if reverse else i, inside(places, count, i)
            for n in range(0, H, LANES):
                s = further(scales, 3 * n)
                for b in range(B):
                    new, at_x = t * frame + b * step, (t * B + b) * 3 * H
                    for first in range(0, found, GROUP):
                        l0, l1 = member(places, found, first), member(places, found, first + 1)
                        l2, l3 = member(places, found, first + 2), member(places, found, first + 3)
                        h0 = state_of(row, group, places, l0, i, new, back, b * H)
                        h1 = state_of(row, group, places, l1, i, new, back, b * H)
                        h2 = state_of(row, group, places, l2, i, new, back, b * H)
                        h3 = state_of(row, group, places, l3, i, new, back, b * H)
                        three_sums_of_four(h0, h1, h2, h3, w + 3 * n * H, H, s, sums)
                        for j in range(min(GROUP, found - first)):
                            l = member(places, found, first + j)
                            x, y = f32(row, lane(group, l), 0) + at_x, f32(row, lane(group, l), 2) + new
                            h = state_of(row, group, places, l, i, new, back, b * H)
                            z, r, own = (
                                vload(sums, 64 * j),
                                vload(sums, 64 * j + 16),
                                vload(sums, 64 * j + 32),
                            )
                            finish_gru(
                                x, h, bias, y, n, H, z, r, own,
                                code0, alpha0, beta0, code1, alpha1, beta1, clip,
                            )  # fmt: skip
        kept(row, group, count, places)
        left -= count
        group = lane(group, count)


@device
def run_lstm_lanes(row: Row, bases: Bases, w: Pointer, scales: Scales) -> None:
    """All frames of several streams."""
    places, sums = stack_i64(PLACES), stack_f32(SUMS)
    T, B, H = number(row, 8), number(row, 9), number(row, 10)
    frame, step, reverse, clip = number(row, 12), number(row, 13), number(row, 14), real(row, 16)
    code0, alpha0, beta0 = number(row, 17), real(row, 18), real(row, 19)
    code1, alpha1, beta1 = number(row, 20), real(row, 21), real(row, 22)
    code2, alpha2, beta2 = number(row, 23), real(row, 24), real(row, 25)
    peepholes, couples, back = f32(row, bases, 29), number(row, 30), frame if reverse else -frame
    left, group = lane_count(bases), bases
    while left > 0:
        count = min(left, CHUNK)
        for l in range(count):
            one = lane(group, l)
            if number(row, 15) and i64(row, one, 5)[0] == 0:
                take_rows(f32(row, one, 26), f32(row, one, 27), B, H, number(row, 28))
        prepared(row, group, count, places)
        for i in range(T):
            t, found = T - 1 - i if reverse else i, inside(places, count, i)
            for n in range(0, H, LANES):
                s = further(scales, 4 * n)
                for b in range(B):
                    new, at_x = t * frame + b * step, (t * B + b) * 4 * H
                    for first in range(0, found, GROUP):
                        l0, l1 = member(places, found, first), member(places, found, first + 1)
                        l2, l3 = member(places, found, first + 2), member(places, found, first + 3)
                        h0 = state_of(row, group, places, l0, i, new, back, b * H)
                        h1 = state_of(row, group, places, l1, i, new, back, b * H)
                        h2 = state_of(row, group, places, l2, i, new, back, b * H)
                        h3 = state_of(row, group, places, l3, i, new, back, b * H)
                        four_sums_of_four(h0, h1, h2, h3, w + 4 * n * H, H, s, sums)
                        for j in range(min(GROUP, found - first)):
                            one = lane(group, member(places, found, first + j))
                            x, y = f32(row, one, 0) + at_x, f32(row, one, 2) + new
                            gi, go = vload(sums, 64 * j), vload(sums, 64 * j + 16)
                            gf, gc = vload(sums, 64 * j + 32), vload(sums, 64 * j + 48)
                            finish_lstm(
                                x, f32(row, one, 26) + b * H, peepholes, y, n, H, couples, gi, go, gf, gc,
                                code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
                            )  # fmt: skip
        kept(row, group, count, places)
        left -= count
        group = lane(group, count)


@lanes_of(gru)
def gru_lanes(row: Row, bases: Bases) -> None:
    """``gru`` for several streams."""
    run_gru_lanes(row, bases, f32(row, bases, 1), None)


@lanes_of(gru_bf16)
def gru_bf16_lanes(row: Row, bases: Bases) -> None:
    """``gru_bf16`` for several streams."""
    run_gru_lanes(row, bases, bf16(row, bases, 1), None)


@lanes_of(gru_int8)
def gru_int8_lanes(row: Row, bases: Bases) -> None:
    """``gru_int8`` for several streams."""
    run_gru_lanes(row, bases, i8(row, bases, 1), f32(row, bases, 24))


@lanes_of(lstm)
def lstm_lanes(row: Row, bases: Bases) -> None:
    """``lstm`` for several streams."""
    run_lstm_lanes(row, bases, f32(row, bases, 1), None)


@lanes_of(lstm_bf16)
def lstm_bf16_lanes(row: Row, bases: Bases) -> None:
    """``lstm_bf16`` for several streams."""
    run_lstm_lanes(row, bases, bf16(row, bases, 1), None)


@lanes_of(lstm_int8)
def lstm_int8_lanes(row: Row, bases: Bases) -> None:
    """``lstm_int8`` for several streams."""
    run_lstm_lanes(row, bases, i8(row, bases, 1), f32(row, bases, 31))
