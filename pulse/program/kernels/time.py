"""Instructions whose result depends on the number of earlier pulses.

A clock is two int64, of which the first counts the pulses so far. An end is one int64: the frames of a wire in the
whole stream (``1 << 62`` until it is known). The ops are in ``ops/time_ends.py``, ``ops/time_position.py`` and
``ops/time.py`` (``LastFrames``).
"""

from collections.abc import Iterator

from pulse.jit.language.raw import as_f32, as_f64, as_i16, as_i32, as_i64, fill_bytes, move_bytes
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, reads, updates, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, require_element_size, run
from pulse.program.kernels.copy import fill_run, sign_extend
from pulse.program.kernels.dtypes import (
    BOOL_CODE,
    F32_CODE,
    F64_CODE,
    I16_CODE,
    I32_CODE,
    I64_CODE,
    U16_CODE,
    width_of,
)

PADDING_MODES = ("constant", "edge", "reflect", "symmetric")
"""What ``FillEndsRow`` writes outside the stream, by number."""
CONSTANT, EDGE, REFLECT, SYMMETRIC = range(len(PADDING_MODES))


@device
def copy_frames(dst: Pointer, src: Pointer, frames: int, frame: int, dst_step: int, src_step: int) -> None:
    """Copy frames of ``frame`` bytes that are ``dst_step`` and ``src_step`` bytes apart; u8 pointers."""
    if dst_step == frame and src_step == frame:
        move_bytes(dst, src, frames * frame)
    else:
        for i in range(frames):
            move_bytes(dst + i * dst_step, src + i * src_step, frame)


@device
def padding_frame(frame: int, length: int, mode: int) -> int:
    """Return the frame that edge, reflect or symmetric padding puts in place of one outside 0 .. length-1."""
    if mode == EDGE:
        return min(max(frame, 0), length - 1)
    twice = 1 if mode == SYMMETRIC else 0
    if frame < 0:
        return -frame - twice
    return 2 * (length - 1) - frame + twice


@device
def stream_span(clock: Pointer, end: Pointer, offset: int, frames: int) -> tuple[int, int]:
    """Return which of a pulse's frames belong to the stream, as start and stop."""
    first = clock[0] * frames - offset
    start = min(frames, max(0, -first))
    return start, max(start, min(frames, end[0] - first))


class FillEndsRow(Instruction):
    """Replace frames outside the stream: y[i] is frame f = clock*P - keep - shift + i, for i < P + keep.

    A part of the row has only ``frames`` i from ``first`` on.

    Inside of the stream, y[i] = x[i - keep - shift + offset + overlap]. Outside, mode 0 (constant): row f + head
    frames of head, or row f - end of tail, or the fill if the table is empty; mode 1 (edge): the first or
    last frame; modes 2 (reflect) and 3 (symmetric): the mirrored frame. Zeros if x or the table has no such frame.
    x [overlap + P frames] may be y [keep + P frames], ``in_place``, if the mode is constant, overlap 0 and offset =
    shift; keep is at most overlap. Frames have ``run`` elements of ``size`` bytes, which are ``step`` elements apart;
    ``bits`` are the bits of the fill.
    """

    DATA = ("bits",)
    x: Operand = reads(None)
    y: Operand = writes(None)
    clock: Operand = reads("i64", 1)
    end: Operand = reads("i64", 1)
    P: int
    overlap: int
    offset: int
    shift: int
    mode: int
    size: int
    run: int
    step_x: int
    step_y: int
    bits: int
    head: Operand = reads(None, rarely=True)
    head_frames: int
    tail: Operand = reads(None, rarely=True)
    tail_frames: int
    keep: int
    in_place: bool
    first: int
    frames: int

    def touched_bytes(self) -> dict[str, int]:
        return dict.fromkeys("xy", 0 if self.in_place else self.frames * self.run * self.size)

    def work(self) -> int:
        return 0 if self.in_place else 8 * self.frames * self.run

    def cuts(self) -> Iterator[Cut]:
        yield Cut("frames", 1, {"first": 1})

    def reaches(self) -> Iterator[Reach]:
        require_element_size(self.size)
        require(min(self.P, self.overlap, self.keep, self.first, self.frames) >= 0, "frames below 0")
        require(self.first + self.frames <= self.P + self.keep, "frames beyond the pulse")
        run_of_frame = run(self.run)
        yield self.x, (run(self.overlap + self.P, self.step_x) + run_of_frame) * self.size
        yield self.y, (run(self.P + self.keep, self.step_y) + run_of_frame) * self.size
        yield self.head, (run(self.head_frames, self.run) + run_of_frame) * self.size
        yield self.tail, (run(self.tail_frames, self.run) + run_of_frame) * self.size


@kernel
def fill_ends(row: FillEndsRow) -> None:
    """Copy all frames of the stream at once, then the others one by one."""
    x, y, pulse, overlap, offset, shift = row.x, row.y, row.P, row.overlap, row.offset, row.shift
    length, keep, first, last = row.end[0], row.keep, row.first, row.first + row.frames
    base = row.clock[0] * pulse - keep
    pulse, overlap = pulse + keep, overlap - keep
    ahead = offset + overlap - shift
    begin = min(max(shift - base, 0), pulse)
    end = max(begin, min(length - base + shift, pulse))
    if begin == 0 and end == pulse and ahead == 0 and row.in_place:
        return
    mode, size, run = row.mode, row.size, row.run
    frame, x_step, y_step = run * size, row.step_x * size, row.step_y * size
    known_begin = min(max(begin, -ahead), end)
    known_end = max(known_begin, min(end, overlap + pulse - ahead))
    i, known = max(known_begin, first), min(known_end, last)
    if i < known:
        copy_frames(y + i * y_step, x + (i + ahead) * x_step, known - i, frame, y_step, x_step)
    if known_end - known_begin == pulse:
        return
    bits, head, head_frames, tail = row.bits, row.head, row.head_frames, row.tail
    tail_frames = row.tail_frames
    i = first
    while i < last:
        if known_begin <= i < known_end:
            i = known_end
            continue
        target = y + i * y_step
        f = base + i - shift
        if begin <= i < end:
            fill_bytes(target, 0, frame)
        elif mode == CONSTANT:
            precedes = f < 0
            frames = head_frames if precedes else tail_frames
            index = f + head_frames if precedes else f - length
            if frames == 0:
                fill_run(target, size, run, bits)
            elif index < 0 or index >= frames:
                fill_bytes(target, 0, frame)
            elif precedes:
                move_bytes(target, head + index * frame, frame)
            else:
                move_bytes(target, tail + index * frame, frame)
        else:
            index = padding_frame(f, length, mode) + offset - base + overlap
            if index < 0 or index >= overlap + pulse:
                fill_bytes(target, 0, frame)
            else:
                move_bytes(target, x + index * x_step, frame)
        i += 1


@device
def write_ramp(y: Pointer, count: int, first: int, start: float, step: float) -> None:
    """Set ``y[i] = start + (first + i)*step``."""
    for i in range(count):
        y[i] = start + (first + i) * step


class PositionsRow(Instruction):
    """``y[i] = start + (clock*P - offset + i)*step``, i < P; by the real fields for f32 and f64, else the integers."""

    DATA = ("start", "step")
    y: Operand = writes(None)
    clock: Operand = reads("i64", 1)
    P: int
    offset: int
    dtype: int
    real_start: float
    real_step: float
    start: int
    step: int

    def reaches(self) -> Iterator[Reach]:
        yield self.y, run(self.P) * width_of(self.dtype)


@kernel
def positions(row: PositionsRow) -> None:
    """Run ``write_ramp`` for the element type of y."""
    y, pulse, dtype, real_start, real_step = row.y, row.P, row.dtype, row.real_start, row.real_step
    start, step, first = row.start, row.step, row.clock[0] * row.P - row.offset
    if dtype == F32_CODE:
        write_ramp(as_f32(y), pulse, first, real_start, real_step)
    elif dtype == F64_CODE:
        write_ramp(as_f64(y), pulse, first, real_start, real_step)
    elif dtype == I64_CODE:
        write_ramp(as_i64(y), pulse, first, start, step)
    else:
        for i in range(pulse):
            value = start + (first + i) * step
            if dtype == I32_CODE:
                as_i32(y)[i] = sign_extend(value, 32)
            elif dtype in (I16_CODE, U16_CODE):
                as_i16(y)[i] = sign_extend(value, 16)
            elif dtype == BOOL_CODE:
                y[i] = 1 if value != 0 else 0
            else:
                y[i] = value & 255


class TableLookupRow(Instruction):
    """y[i] = table[start + (clock*P - offset + i)*step], i < P; zeros if the table has no such row.

    The table has ``rows`` rows, each of ``run`` elements of ``size`` bytes, contiguous in table and y.
    """

    table: Operand = reads(None)
    y: Operand = writes(None)
    clock: Operand = reads("i64", 1)
    P: int
    offset: int
    start: int
    step: int
    rows: int
    size: int
    run: int

    def touched_bytes(self) -> dict[str, int]:
        return dict.fromkeys(("table", "y"), self.P * self.size * self.run)

    def reaches(self) -> Iterator[Reach]:
        require_element_size(self.size)
        row = run(self.run)
        yield self.table, (run(self.rows, self.run) + row) * self.size
        yield self.y, (run(self.P, self.run) + row) * self.size


@kernel
def table_lookup(row: TableLookupRow) -> None:
    """Copy one run if the rows are contiguous, else row by row."""
    table, y, pulse, step, rows, bytes_ = row.table, row.y, row.P, row.step, row.rows, row.size * row.run
    first = row.start + (row.clock[0] * pulse - row.offset) * step
    if step == 1 and first >= 0 and first + pulse <= rows:
        move_bytes(y, table + first * bytes_, pulse * bytes_)
        return
    for i in range(pulse):
        table_row = first + i * step
        if 0 <= table_row < rows:
            move_bytes(y + i * bytes_, table + table_row * bytes_, bytes_)
        else:
            fill_bytes(y + i * bytes_, 0, bytes_)


class LastFramesRow(Instruction):
    """Append the valid frames among x's P frames to a memory of the F newest frames, oldest first.

    Frame j of the stream is at index j + offset of the concatenated pulses. Frames have ``run`` elements of ``size``
    bytes, which are ``step`` elements apart in x.
    """

    x: Operand = reads(None)
    memory: Operand = updates(None)
    clock: Operand = reads("i64", 1)
    end: Operand = reads("i64", 1)
    P: int
    offset: int
    F: int
    size: int
    run: int
    step: int

    def reaches(self) -> Iterator[Reach]:
        require_element_size(self.size)
        frame = run(self.run)
        yield self.x, (run(self.P, self.step) + frame) * self.size
        yield self.memory, (run(self.F, self.run) + frame) * self.size


@kernel
def last_frames(row: LastFramesRow) -> None:
    """Move the older frames up, then append the new ones."""
    x, memory, pulse, kept, size = row.x, row.memory, row.P, row.F, row.size
    frame, x_step = row.run * size, row.step * size
    start, stop = stream_span(row.clock, row.end, row.offset, pulse)
    start = max(start, stop - kept)
    fresh = stop - start
    if fresh > 0:
        old = kept - fresh
        move_bytes(memory, memory + fresh * frame, old * frame)
        copy_frames(memory + old * frame, x + start * x_step, fresh, frame, frame, x_step)


class TickRow(Instruction):
    """Count a finished pulse: ``clock[0] += 1``."""

    clock: Operand = updates("i64", 1)


@kernel
def tick(row: TickRow) -> None:
    clock = row.clock
    clock[0] = clock[0] + 1
