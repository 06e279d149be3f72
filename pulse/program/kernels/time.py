"""Kernels that know the time: what a pulse holds depends on how many came before it.

A clock is two int64, the first counts the pulses so far; an end is one int64, how many frames the wire has in
the whole stream (``1 << 62`` as long as nobody knows). Meanings: ``ops/ends.py``, ``ops/position.py`` and
``LastFrames`` of ``ops/delay.py``.
"""

from pulse.program.kernels.copy import fill_run, signed
from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, f64, i32, i64, number, real, u8
from pulse.program.kernels.raw import fill_bytes, move_bytes
from pulse.program.kernels.registry import device, kernel

CONSTANT, EDGE, REFLECT, SYMMETRIC = range(4)


@device
def copy_frames(dst: Pointer, src: Pointer, frames: int, frame: int, dst_step: int, src_step: int) -> None:
    """Copy frames of ``frame`` bytes that lie ``dst_step`` and ``src_step`` bytes apart; u8 pointers."""
    if dst_step == frame and src_step == frame:
        move_bytes(dst, src, frames * frame)
    else:
        for i in range(frames):
            move_bytes(dst + i * dst_step, src + i * src_step, frame)


@device
def shown_frame(frame: int, length: int, mode: int) -> int:
    """The frame that edge, reflect or symmetric padding shows in place of one outside of 0 .. length-1."""
    if mode == EDGE:
        return min(max(frame, 0), length - 1)
    twice = 1 if mode == SYMMETRIC else 0
    if frame < 0:
        return -frame - twice
    return 2 * (length - 1) - frame + twice


@kernel
def fill_ends(row: Row, bases: Bases) -> None:
    """Frames outside of the stream replaced: y[i] is frame f = clock*P - keep - shift + i, for i < P + keep.

    Inside of the stream, y[i] = x[i - keep - shift + offset + overlap]. Outside, mode 0 (constant): row f + head
    frames of head, or row f - end of tail, or the fill where the table is empty; mode 1 (edge): the first or
    last frame; modes 2 (reflect) and 3 (symmetric): the mirrored frame. Zeros where x or the table has no such frame.
    x may be y if the mode is constant, overlap 0 and offset = shift.
    Arguments: x [overlap + P frames], y [keep + P frames], clock, end (operands), P, overlap, offset, shift,
    mode, bytes of an element, elements of a frame, elements from frame to frame of x, of y, bits of the fill,
    head (operand), frames of head, tail (operand), frames of tail, keep (at most overlap).
    """
    x, y = u8(row, bases, 0), u8(row, bases, 1)
    pulse, overlap, offset, shift = number(row, 4), number(row, 5), number(row, 6), number(row, 7)
    length, keep = i64(row, bases, 3)[0], number(row, 18)
    base = i64(row, bases, 2)[0] * pulse - keep
    pulse, overlap = pulse + keep, overlap - keep
    ahead = offset + overlap - shift
    begin = min(max(shift - base, 0), pulse)
    end = max(begin, min(length - base + shift, pulse))
    if begin == 0 and end == pulse and ahead == 0 and number(row, 0) == number(row, 1):
        return
    mode, size, run = number(row, 8), number(row, 9), number(row, 10)
    frame = run * size
    x_step, y_step = number(row, 11) * size, number(row, 12) * size
    known_begin = min(max(begin, -ahead), end)
    known_end = max(known_begin, min(end, overlap + pulse - ahead))
    if known_begin < known_end:
        source, target = x + (known_begin + ahead) * x_step, y + known_begin * y_step
        copy_frames(target, source, known_end - known_begin, frame, y_step, x_step)
    if known_end - known_begin == pulse:
        return
    bits, head_frames, tail_frames = number(row, 13), number(row, 15), number(row, 17)
    head, tail = u8(row, bases, 14), u8(row, bases, 16)
    i = 0
    while i < pulse:
        if i == known_begin and known_begin < known_end:
            i = known_end
            continue
        target = y + i * y_step
        f = base + i - shift
        if begin <= i < end:
            fill_bytes(target, 0, frame)
        elif mode == CONSTANT:
            before = f < 0
            frames = head_frames if before else tail_frames
            at = f + head_frames if before else f - length
            if frames == 0:
                fill_run(target, size, run, bits)
            elif at < 0 or at >= frames:
                fill_bytes(target, 0, frame)
            elif before:
                move_bytes(target, head + at * frame, frame)
            else:
                move_bytes(target, tail + at * frame, frame)
        else:
            at = shown_frame(f, length, mode) + offset - base + overlap
            if at < 0 or at >= overlap + pulse:
                fill_bytes(target, 0, frame)
            else:
                move_bytes(target, x + at * x_step, frame)
        i += 1


@device
def write_ramp(y: Pointer, count: int, first: int, start: float, step: float) -> None:
    """``y[i] = start + (first + i)*step``."""
    for i in range(count):
        y[i] = start + (first + i) * step


@kernel
def positions(row: Row, bases: Bases) -> None:
    """``y[i] = start + (clock*P - offset + i)*step``, i < P.

    Arguments: y (operand), clock (operand), P, offset, dtype code (0 f32, 1 f64, 2 i64, 3 i32, 4 u8, 5 i8,
    6 bool), start, step (reals, for f32 and f64), start, step (int64, for the others).
    """
    pulse, dtype = number(row, 2), number(row, 4)
    first = i64(row, bases, 1)[0] * pulse - number(row, 3)
    if dtype == 0:
        write_ramp(f32(row, bases, 0), pulse, first, real(row, 5), real(row, 6))
    elif dtype == 1:
        write_ramp(f64(row, bases, 0), pulse, first, real(row, 5), real(row, 6))
    else:
        start, step = number(row, 7), number(row, 8)
        if dtype == 2:
            write_ramp(i64(row, bases, 0), pulse, first, start, step)
        else:
            for i in range(pulse):
                value = start + (first + i) * step
                if dtype == 3:
                    i32(row, bases, 0)[i] = signed(value, 32)
                elif dtype == 6:
                    u8(row, bases, 0)[i] = 1 if value != 0 else 0
                else:
                    u8(row, bases, 0)[i] = value & 255


@kernel
def table_rows(row: Row, bases: Bases) -> None:
    """y[i] = table[start + (clock*P - offset + i)*step], i < P; zeros where the table has no such row.

    Arguments: table, y (operands), clock (operand), P, offset, start, step, rows of the table, bytes of an
    element, elements of a row (contiguous in both).
    """
    table, y = u8(row, bases, 0), u8(row, bases, 1)
    pulse, start, step, rows = number(row, 3), number(row, 5), number(row, 6), number(row, 7)
    bytes_ = number(row, 8) * number(row, 9)
    first = start + (i64(row, bases, 2)[0] * pulse - number(row, 4)) * step
    if step == 1 and first >= 0 and first + pulse <= rows:
        move_bytes(y, table + first * bytes_, pulse * bytes_)
        return
    for i in range(pulse):
        at = first + i * step
        if 0 <= at < rows:
            move_bytes(y + i * bytes_, table + at * bytes_, bytes_)
        else:
            fill_bytes(y + i * bytes_, 0, bytes_)


@kernel
def last_frames(row: Row, bases: Bases) -> None:
    """Append the valid ones of x's P frames to a memory of F frames, which keeps the newest, oldest first.

    Frame j of the stream is at index j + offset of the concatenated pulses.
    Arguments: x, memory (operands), clock, end (operands), P, offset, F, bytes of an element, elements of a
    frame, elements from frame to frame of x.
    """
    x, memory = u8(row, bases, 0), u8(row, bases, 1)
    pulse, kept, size = number(row, 4), number(row, 6), number(row, 7)
    frame, x_step = number(row, 8) * size, number(row, 9) * size
    first = i64(row, bases, 2)[0] * pulse - number(row, 5)
    start = min(pulse, max(0, -first))
    stop = max(start, min(pulse, i64(row, bases, 3)[0] - first))
    start = max(start, stop - kept)
    fresh = stop - start
    if fresh > 0:
        old = kept - fresh
        move_bytes(memory, memory + fresh * frame, old * frame)
        copy_frames(memory + old * frame, x + start * x_step, fresh, frame, frame, x_step)


@kernel
def tick(row: Row, bases: Bases) -> None:
    """One more pulse is over: ``clock[0] += 1``.  Argument: clock (operand)."""
    clock = i64(row, bases, 0)
    clock[0] = clock[0] + 1
