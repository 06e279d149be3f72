"""Ops that remember frames, or know their position."""

import numpy as np

from pulse.dim import TDim
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.cumsum import CumSum, CumSumStream
from pulse.ops.delay import Delay, LastFrames
from pulse.ops.length import StreamEnd
from pulse.ops.position import Positions, Range, TableRows


@writes(Delay)
def write_delay(w: NodeWriter, op: Delay) -> str:
    """The past frames are the state; nothing is moved that need not be."""
    (x,) = w.inputs
    axis, pulse = op.axis, w.sizes()[op.axis]
    held = op.delay + op.overlap
    if held == 0:
        return x
    state = w.graph.state(f"{w.name}.state", op.initial)
    if op.delay == 0:
        y = w.emit("Concat", [state, x], axis=axis)
        newest = x if held <= pulse else y
        size = pulse if held <= pulse else pulse + held
        w.graph.keep(state, newest if size == held else w.crop(newest, axis, size - held, size, "newest"))
        return y
    if op.overlap == 0 and held >= pulse:
        rest = [] if held == pulse else [w.crop(state, axis, pulse, held, "rest")]
        w.graph.keep(state, w.emit("Concat", [*rest, x], "newest", axis=axis) if rest else x)
        return w.crop(state, axis, 0, pulse) if rest else state
    seen = w.emit("Concat", [state, x], "seen", axis=axis)
    w.graph.keep(state, w.crop(seen, axis, pulse, pulse + held, "newest"))
    return w.crop(seen, axis, 0, pulse + op.overlap)


@writes(LastFrames)
def write_last_frames(w: NodeWriter, op: LastFrames) -> str:
    """Of the state and the pulse the frames up to the last one of the stream; before its first one are zeros."""
    (x,) = w.inputs
    axis, pulse = op.axis, w.sizes()[op.axis]
    (initial,) = op.begin()
    state = w.graph.state(f"{w.name}.state", initial)
    if op.offset > 0:
        x = only_valid(w, x, axis, pulse, op.offset, None)
    seen = w.emit("Concat", [state, x], "seen", axis=axis)
    stop = w.clock.stop(pulse, op.offset, op.length)
    places = w.clock.op("Add", [stop, w.integers(range(op.frames), "places")], f"{stop}+0..{op.frames}")
    y = w.emit("Gather", [seen, places], axis=axis)
    w.graph.keep(state, y)
    return y


def only_valid(w: NodeWriter, x: str, axis: int, pulse: int, offset: int, length: TDim | None) -> str:
    """Zeros in place of the frames outside of the stream: before its first one, and behind ``length`` if given."""
    if offset <= 0 and length is None:
        return x
    positions = w.clock.positions(pulse, -offset, pulse, len(w.sizes()) - 1 - axis)
    inside = w.clock.inside(positions, offset > 0, length)
    if inside is None:
        return x
    return w.emit("Where", [inside, x, w.number(0, w.dtype(), "zero")], "valid")


@writes(Range)
def write_range(w: NodeWriter, op: Range) -> str:
    """Numbers that do not depend on the stream."""
    return w.constant(op.eval([], {})[0], "numbers")


@writes(Positions)
def write_positions(w: NodeWriter, op: Positions) -> str:
    """In integers where it is one of integers, else through double precision."""
    integer = np.issubdtype(op.dtype, np.integer)
    wide = np.dtype(np.int64 if integer else np.float64)
    positions = w.clock.positions(op.frames, -op.offset, op.frames)
    last = [name for name, needed in (("scaled", op.step_size != 1), ("moved", op.start != 0)) if needed]
    number = positions if integer else w.cast(positions, wide, "wide")
    if op.step_size != 1:
        number = w.emit("Mul", [number, w.number(op.step_size, wide, "step")], "scaled")
    if op.start != 0:
        number = w.emit("Add", [number, w.number(op.start, wide, "start")], "moved")
    return number if op.dtype == wide and (last or integer) else w.cast(number, op.dtype)


@writes(TableRows)
def write_table_rows(w: NodeWriter, op: TableRows) -> str:
    """Rows by position; positions outside of the table belong to no frame of the stream."""
    rows = w.clock.positions(op.frames, -op.offset, op.frames)
    if op.step_size != 1:
        rows = w.emit("Mul", [rows, w.number(op.step_size, np.dtype(np.int64), "step")], "scaled")
    if op.start != 0:
        rows = w.emit("Add", [rows, w.number(op.start, np.dtype(np.int64), "start")], "moved")
    least = w.emit("Max", [rows, w.clock.number(0)], "least")
    last = w.clock.number(w.sizes()[op.axis] - 1)
    return w.emit("Gather", [w.inputs[0], w.emit("Min", [least, last], "rows")], axis=op.axis)


@writes(StreamEnd)
def write_stream_end(w: NodeWriter, op: StreamEnd) -> str:
    """The register itself, or a length that follows from it."""
    if op.frames == TDim.of(w.clock.symbol):
        return w.clock.stream_end(w.outputs[0])
    return w.emit("Identity", [w.clock.length(op.frames)])


@writes(CumSum)
def write_cumsum(w: NodeWriter, op: CumSum) -> list[str]:
    """Sums of one pulse; the total where somebody reads it."""
    (x,) = w.inputs
    wide = _wide(w)
    exact = wide == w.dtype()
    source = x if exact else w.cast(x, wide, "wide")
    how = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    axis = w.clock.number(op.axis)
    sums = w.emit("CumSum", [source, axis], "" if exact else "sums", **how)
    results = [sums if exact else w.cast(sums, w.dtype())]
    return [*results, w.reduce("ReduceSum", x, (op.axis,), "total") if w.used[1] else ""]


def _wide(w: NodeWriter) -> np.dtype[np.generic]:
    """The type of sums: double precision for floats, i64 for integers."""
    return np.dtype(np.float64 if np.issubdtype(w.dtype(), np.floating) else np.int64)


@writes(CumSumStream)
def write_cumsum_stream(w: NodeWriter, op: CumSumStream) -> list[str]:
    """The sum so far is the state; frames outside of the stream add nothing to it."""
    axis, pulse, wide = op.op.axis, w.sizes()[op.op.axis], _wide(w)
    (initial,) = op.begin()
    state = w.graph.state(f"{w.name}.state", initial.astype(wide))
    x = only_valid(w, w.inputs[0], axis, pulse, op.offset, op.length if w.used[1] else None)
    source = x if wide == w.dtype() else w.cast(x, wide, "wide")
    exact = wide == w.dtype()
    running = w.emit("CumSum", [source, w.clock.number(axis)], "running", exclusive=int(op.op.exclusive))
    sums = w.emit("Add", [running, state], "" if exact else "sums")
    total = _last(w, sums, axis, pulse, "sum")
    if op.op.exclusive:
        total = w.emit("Add", [total, _last(w, source, axis, pulse, "newest")], "whole")
    w.graph.keep(state, total)
    results = [sums if exact else w.cast(sums, w.dtype())]
    if not w.used[1]:
        return [*results, ""]
    return [*results, total if exact else w.cast(total, w.dtype(), "total")]


def _last(w: NodeWriter, x: str, axis: int, frames: int, name: str) -> str:
    """The last frame of a pulse."""
    return x if frames == 1 else w.crop(x, axis, frames - 1, frames, name)
