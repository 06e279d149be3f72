"""Write ops that store frames, depend on their position or replace frames outside the stream."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import I64, Array
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.time import Delay, LastFrames
from pulse.ops.time_ends import FillEnds
from pulse.ops.time_length import StreamEnd
from pulse.ops.time_position import Positions, TableRows


@writes(Delay)
def write_delay(w: NodeWriter, op: Delay) -> str:
    """Keep the past frames as the state; nothing is moved that need not be."""
    (x,) = w.inputs
    axis, pulse = op.axis, w.sizes()[op.axis]
    frames = op.delay + op.overlap
    if frames == 0:
        return x
    state = w.graph.add_state(f"{w.name}.state", op.initial)
    if op.delay == 0:
        y = w.emit("Concat", [state, x], axis=axis)
        newest = x if frames <= pulse else y
        size = pulse if frames <= pulse else pulse + frames
        w.graph.keep(state, newest if size == frames else w.crop(newest, axis, size - frames, size, "newest"))
        return y
    if op.overlap == 0 and frames >= pulse:
        rest = [] if frames == pulse else [w.crop(state, axis, pulse, frames, "rest")]
        w.graph.keep(state, w.emit("Concat", [*rest, x], "newest", axis=axis) if rest else x)
        return w.crop(state, axis, 0, pulse) if rest else state
    buffer = w.emit("Concat", [state, x], "buffer", axis=axis)
    w.graph.keep(state, w.crop(buffer, axis, pulse, pulse + frames, "newest"))
    return w.crop(buffer, axis, 0, pulse + op.overlap)


@writes(LastFrames)
def write_last_frames(w: NodeWriter, op: LastFrames) -> str:
    """Write the frames of the state and the pulse up to the last one of the stream; before its first one are zeros."""
    (x,) = w.inputs
    axis, pulse = op.axis, w.sizes()[op.axis]
    (initial,) = op.initial_state()
    state = w.graph.add_state(f"{w.name}.state", initial)
    if op.offset > 0:
        x = only_valid(w, x, axis, pulse, op.offset, None)
    buffer = w.emit("Concat", [state, x], "buffer", axis=axis)
    stop = w.clock.stop(pulse, op.offset, op.length)
    indices = w.clock.add_op("Add", [stop, w.integers(range(op.frames), "offsets")], f"{stop}+0..{op.frames}")
    y = w.emit("Gather", [buffer, indices], axis=axis)
    w.graph.keep(state, y)
    return y


def only_valid(w: NodeWriter, x: str, axis: int, pulse: int, offset: int, length: TDim | None) -> str:
    """Replace the frames outside the stream by zeros: before its first one, and after ``length`` if given."""
    if offset <= 0 and length is None:
        return x
    positions = w.clock.positions(pulse, -offset, pulse, len(w.sizes()) - 1 - axis)
    inside = w.clock.emit_positions_inside(positions, offset > 0, length)
    if inside is None:
        return x
    return w.emit("Where", [inside, x, w.number(0, w.dtype(), "zero")], "valid")


@writes(Positions)
def write_positions(w: NodeWriter, op: Positions) -> str:
    """Compute a range of integers in integers, others in double precision."""
    integer = np.issubdtype(op.dtype, np.integer)
    wide = np.dtype(np.int64 if integer else np.float64)
    positions = w.clock.positions(op.frames, -op.offset, op.frames)
    last = [name for name, applies in (("scaled", op.step_size != 1), ("moved", op.start != 0)) if applies]
    number = positions if integer else w.cast(positions, wide, "wide")
    if op.step_size != 1:
        number = w.emit("Mul", [number, w.number(op.step_size, wide, "step")], "scaled")
    if op.start != 0:
        number = w.emit("Add", [number, w.number(op.start, wide, "start")], "moved")
    return number if op.dtype == wide and (last or integer) else w.cast(number, op.dtype)


@writes(TableRows)
def write_table_rows(w: NodeWriter, op: TableRows) -> str:
    """Look up rows by position; positions outside the table belong to no frame of the stream."""
    rows = w.clock.positions(op.frames, -op.offset, op.frames)
    if op.step_size != 1:
        rows = w.emit("Mul", [rows, w.number(op.step_size, I64, "step")], "scaled")
    if op.start != 0:
        rows = w.emit("Add", [rows, w.number(op.start, I64, "start")], "moved")
    clamped = w.emit("Max", [rows, w.clock.number(0)], "clamped")
    last = w.clock.number(w.sizes()[op.axis] - 1)
    return w.emit("Gather", [w.inputs[0], w.emit("Min", [clamped, last], "rows")], axis=op.axis)


@writes(StreamEnd)
def write_stream_end(w: NodeWriter, op: StreamEnd) -> str:
    """Return the register itself, or compute a length that follows from it."""
    if op.frames == TDim.of(w.clock.symbol):
        return w.clock.stream_end(w.outputs[0])
    return w.emit("Identity", [w.clock.length(op.frames)])


@writes(FillEnds)
def write_fill_ends(w: NodeWriter, op: FillEnds) -> str:
    """Fill by position: select constants, and look up edge and mirrored frames in the window."""
    axis, frames = op.axis, w.output_shape()[op.axis]
    step = w.sizes()[axis] - op.overlap
    low = -op.keep - op.shift
    if op.mode != "constant":
        return _look_up(w, op, step, w.clock.positions(step, low, frames))
    start = low + op.offset + op.overlap
    if start < 0 or start + frames > w.sizes()[axis]:
        raise w.error(f"it reads frames {start}:{start + frames} of a window of {w.sizes()[axis]}")
    x = w.inputs[0]
    if frames != w.sizes()[axis]:
        x = w.crop(x, axis, start, start + frames, "window")
    positions = w.clock.positions(step, low, frames, len(w.sizes()) - 1 - axis)
    if op.head is None and op.tail is None:
        inside = w.clock.emit_positions_inside(positions, low < 0, op.length)
        assert inside is not None
        return w.emit("Where", [inside, x, w.number(op.fill, w.dtype(), "fill")])
    flat = w.clock.positions(step, low, frames)
    if low < 0:
        inside = w.clock.emit_positions_inside(positions, True, None)
        assert inside is not None
        before = _rows(w, op, op.head, flat, "head")
        x = w.emit("Where", [inside, x, before], "" if op.tail is None else "with_head")
    if op.tail is not None:
        inside = w.clock.emit_positions_inside(positions, False, op.length)
        assert inside is not None
        index = w.clock.add_op("Sub", [flat, w.clock.length(op.length)], f"{flat}-({op.length})")
        x = w.emit("Where", [inside, x, _rows(w, op, op.tail, index, "tail")])
    return x


def _rows(w: NodeWriter, op: FillEnds, table: Array | None, frames: str, name: str) -> str:
    """Return the rows that replace frames before the first one (the table ends there) or after the last one."""
    if table is None:
        return w.number(op.fill, w.dtype(), "fill")
    rows = table.shape[op.axis]
    if rows == 0:
        return w.number(0, w.dtype(), "zero")
    if name == "head":
        frames = w.clock.add_op("Add", [frames, w.clock.number(rows)], f"{frames}+{rows}")
    clamped = w.clock.add_op("Max", [frames, w.clock.number(0)], f"0..{frames}")
    indices = w.clock.add_op("Min", [clamped, w.clock.number(rows - 1)], f"0..{frames}..{rows - 1}")
    return w.emit(
        "Gather", [w.constant(table.astype(w.dtype()), name), indices], f"{name}_rows", axis=op.axis
    )


def _look_up(w: NodeWriter, op: FillEnds, step: int, frames: str) -> str:
    """Return the source of each frame.

    Inside the stream, the source of frame f is f. Outside it is the nearest frame (edge), or |f| before and
    2 (length - 1) - f after the stream (reflect), or -1 - f and 2 length - 1 - f (symmetric).
    """
    clock, length = w.clock, w.clock.length(op.length)
    last = clock.add_op("Sub", [length, clock.number(1)], f"{op.length}-1")
    if op.mode == "edge":
        inside = clock.add_op("Max", [frames, clock.number(0)], f"0..{frames}")
        sources = clock.add_op("Min", [inside, last], f"0..{frames}..{op.length}-1")
    elif op.mode == "symmetric":
        before = clock.add_op("Sub", [clock.number(-1), frames], f"-1-{frames}")
        inside = clock.add_op("Max", [frames, before], f"max({frames},{before})")
        both = clock.add_op("Add", [last, length], f"2*({op.length})-1")
        mirrored = clock.add_op("Sub", [both, inside], f"2*({op.length})-1-{inside}")
        sources = clock.add_op("Min", [inside, mirrored], f"mirrored twice {frames} of {op.length}")
    else:
        inside = clock.add_op("Abs", [frames], f"|{frames}|")
        twice = clock.add_op("Add", [last, last], f"2*({op.length}-1)")
        mirrored = clock.add_op("Sub", [twice, inside], f"2*({op.length}-1)-|{frames}|")
        sources = clock.add_op("Min", [inside, mirrored], f"mirrored {frames} of {op.length}")
    base = clock.position(step, -op.offset - op.overlap)
    row = clock.add_op("Sub", [sources, base], f"{sources}-({base})")
    clamped = clock.add_op("Max", [row, clock.number(0)], f"0..{row}")
    last_row = clock.number(w.sizes()[op.axis] - 1)
    indices = clock.add_op("Min", [clamped, last_row], f"0..{row}..{w.sizes()[op.axis] - 1}")
    return w.emit("Gather", [w.inputs[0], indices], axis=op.axis)
