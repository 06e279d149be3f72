"""Frames outside of the stream, replaced."""

from pulse.facts import Array
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.ends import FillEnds


@writes(FillEnds)
def write_fill_ends(w: NodeWriter, op: FillEnds) -> str:
    """By position: constants are chosen, edge and mirrored frames looked up in the window."""
    axis, frames = op.axis, w.made()[op.axis]
    step = w.sizes()[axis] - op.overlap
    low = -op.keep - op.shift
    if op.mode != "constant":
        return _looked_up(w, op, step, w.clock.positions(step, low, frames))
    start = low + op.offset + op.overlap
    if start < 0 or start + frames > w.sizes()[axis]:
        raise w.error(f"it asks for frames {start}:{start + frames} of a window of {w.sizes()[axis]}")
    x = w.inputs[0]
    if frames != w.sizes()[axis]:
        x = w.crop(x, axis, start, start + frames, "window")
    positions = w.clock.positions(step, low, frames, len(w.sizes()) - 1 - axis)
    if op.head is None and op.tail is None:
        inside = w.clock.inside(positions, low < 0, op.length)
        assert inside is not None
        return w.emit("Where", [inside, x, w.number(op.fill, w.dtype(), "fill")])
    flat = w.clock.positions(step, low, frames)
    if low < 0:
        inside = w.clock.inside(positions, True, None)
        assert inside is not None
        before = _rows(w, op, op.head, flat, "head")
        x = w.emit("Where", [inside, x, before], "" if op.tail is None else "begun")
    if op.tail is not None:
        inside = w.clock.inside(positions, False, op.length)
        assert inside is not None
        behind = w.clock.op("Sub", [flat, w.clock.length(op.length)], f"{flat}-({op.length})")
        x = w.emit("Where", [inside, x, _rows(w, op, op.tail, behind, "tail")])
    return x


def _rows(w: NodeWriter, op: FillEnds, table: Array | None, frames: str, name: str) -> str:
    """The rows that stand for frames before the first one (the table ends there) or behind the last one."""
    if table is None:
        return w.number(op.fill, w.dtype(), "fill")
    rows = table.shape[op.axis]
    if rows == 0:
        return w.number(0, w.dtype(), "nothing")
    if name == "head":
        frames = w.clock.op("Add", [frames, w.clock.number(rows)], f"{frames}+{rows}")
    least = w.clock.op("Max", [frames, w.clock.number(0)], f"0..{frames}")
    places = w.clock.op("Min", [least, w.clock.number(rows - 1)], f"0..{frames}..{rows - 1}")
    return w.emit("Gather", [w.constant(table.astype(w.dtype()), name), places], f"{name}_rows", axis=op.axis)


def _looked_up(w: NodeWriter, op: FillEnds, step: int, frames: str) -> str:
    """The source of frame f is f inside; else the nearest frame, or |f| in front and 2 (length - 1) - f behind
    (reflect), or -1 - f and 2 length - 1 - f (symmetric).
    """
    clock, length = w.clock, w.clock.length(op.length)
    last = clock.op("Sub", [length, clock.number(1)], f"{op.length}-1")
    if op.mode == "edge":
        begun = clock.op("Max", [frames, clock.number(0)], f"0..{frames}")
        sources = clock.op("Min", [begun, last], f"0..{frames}..{op.length}-1")
    elif op.mode == "symmetric":
        before = clock.op("Sub", [clock.number(-1), frames], f"-1-{frames}")
        begun = clock.op("Max", [frames, before], f"max({frames},{before})")
        both = clock.op("Add", [last, length], f"2*({op.length})-1")
        turned = clock.op("Sub", [both, begun], f"2*({op.length})-1-{begun}")
        sources = clock.op("Min", [begun, turned], f"mirrored twice {frames} of {op.length}")
    else:
        begun = clock.op("Abs", [frames], f"|{frames}|")
        twice = clock.op("Add", [last, last], f"2*({op.length}-1)")
        turned = clock.op("Sub", [twice, begun], f"2*({op.length}-1)-|{frames}|")
        sources = clock.op("Min", [begun, turned], f"mirrored {frames} of {op.length}")
    base = clock.position(step, -op.offset - op.overlap)
    at = clock.op("Sub", [sources, base], f"{sources}-({base})")
    least = clock.op("Max", [at, clock.number(0)], f"0..{at}")
    most = clock.number(w.sizes()[op.axis] - 1)
    places = clock.op("Min", [least, most], f"0..{at}..{w.sizes()[op.axis] - 1}")
    return w.emit("Gather", [w.inputs[0], places], axis=op.axis)
