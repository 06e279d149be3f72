"""Windows over a stream: history, phase, and the frames at its ends."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, StreamFact, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.clock import frames_at
from pulse.ops.op import Ends, Op, Relation, Window
from pulse.ops.source import Const
from pulse.ops.time_ends import FillEnds
from pulse.pulsify.ends import (
    cast_table,
    delay_by_lag,
    extend_ends,
    look_back,
    mirrored_frame,
    require_lag,
    write_mirrored_ends,
)
from pulse.pulsify.wiring import (
    AnyWire,
    Free,
    Mirrored,
    StreamWire,
    Wiring,
    evaluate_prefix,
    require_size,
    static_outlet,
)


def fix_offset(wiring: Wiring, wire: AnyWire, relation: Window | Ends, name: str) -> StreamWire:
    """A stream at a fixed offset; a free wire gets the one that costs no delay."""
    if isinstance(wire, StreamWire):
        return wire
    assert isinstance(wire, Free)
    ends = relation.ends if isinstance(relation, Window) else relation
    if ends is not None and ends.after != 0:
        return wire.at(max(0, require_lag(wiring, wire.length, wire.rate, name)))
    is_fixed = isinstance(relation, Window) and wire.first(1) is not None
    return wire.at(-relation.span if is_fixed and isinstance(relation, Window) else 0)


def takes_mirrored(relation: Relation | None, wire: Mirrored) -> bool:
    """Whether an op fills in mirrored frames itself, or leaves them to the next window."""
    match relation:
        case Window(op=None):
            return False
        case Window(ends=ends):
            return ends is None or ends.changes_nothing or wire.can_surround(ends)
        case Ends():
            return wire.can_surround(relation)
        case _:
            return False


def schedule_window(
    wiring: Wiring,
    node: Node[TypedFact, Op],
    window: Window,
    inputs: list[AnyWire],
    rate: Fraction,
    length: TDim,
) -> StreamWire:
    """Wire an op over a window: its ends, then the buffer; the offset is that of ``pulse.pulsify.schedule``.

    rate, length  rate and length of the output
    Raises        PulsifyError: no delay is long enough for its ends, or a buffer would be too large
    """
    name = node.name
    window, inputs = _soonest_window(wiring, name, window, inputs)
    wire = inputs[window.source]
    stretched = wire if isinstance(wire, Mirrored) else fix_offset(wiring, wire, window, name)
    if window.ends is not None and not window.ends.changes_nothing:
        extra = window.ends.before + window.ends.after
        if isinstance(stretched, Mirrored):
            stretched = stretched.surround(window.ends, stretched.length + extra)
        else:
            stretched = extend_ends(wiring, name, window.ends, stretched, stretched.fact.length + extra)
    if isinstance(stretched, Mirrored) and stretched.goes_on:
        stretched = replace(stretched, stream=delay_by_lag(wiring, stretched.stream, name))
    if isinstance(stretched, Mirrored) and window.op is not None:
        return _wire_mirrored_window(wiring, node, window, inputs, stretched, rate, length)
    stream = write_mirrored_ends(wiring, name, stretched) if isinstance(stretched, Mirrored) else stretched
    if window.op is None:
        offset = stream.fact.offset + window.skip
        fact = replace(stream.fact, length=length, offset=offset, prefix=_after_skip(stream, window.skip))
        return StreamWire(stream.outlet, fact)
    values = [wiring.known_value(wire) if isinstance(wire, OutletId) else None for wire in inputs]
    if stream.fact.offset < 0 and any(
        value is None for slot, value in enumerate(values) if slot != window.source
    ):
        stream = wiring.delay(stream, 0, name)
    group_offset = _groups_late(window, stream.fact.offset)
    start = stream.fact.offset - group_offset * window.stride
    outlet = wiring.window(stream, max(0, -start), name)
    groups = wiring.frames(stream.fact.rate) // window.stride
    first = max(0, start)
    outlet = wiring.crop(outlet, stream.fact.axis, first, first + window.needs(groups), name)
    offset = group_offset * window.up + window.skip
    prefix = _window_prefix(window, stream, values, -group_offset, name) if offset < 0 else None
    fact = StreamFact(window.axis, length, rate, offset, prefix)
    reads = [outlet if slot == window.source else static_outlet(wire) for slot, wire in enumerate(inputs)]
    return wiring.expect(StreamWire(wiring.add(name, window.op, reads, fact), fact), name)


def _soonest_window(
    wiring: Wiring, name: str, window: Window, inputs: list[AnyWire]
) -> tuple[Window, list[AnyWire]]:
    """The window, or the trimmed one if its groups come sooner, and what its op reads."""
    wire, trimmed = inputs[window.source], window.trimmed
    if trimmed is None or not isinstance(wire, StreamWire | Mirrored):
        return window, inputs

    def delay(candidate: Window) -> int:
        groups = _groups_late(candidate, _first_index(wiring, name, candidate, wire))
        return (max(0, groups) if isinstance(wire, Mirrored) else groups) * candidate.up + candidate.skip

    if delay(trimmed.window) >= delay(window):
        return window, inputs
    kernel = wiring.known_value(static_outlet(inputs[trimmed.operand]))
    assert kernel is not None
    stay = np.ascontiguousarray(frames_at(kernel, trimmed.axis, trimmed.first, trimmed.stop))
    taps = wiring.add(f"{name}.taps", Const(stay), (), None)
    return trimmed.window, [taps if slot == trimmed.operand else each for slot, each in enumerate(inputs)]


def _first_index(wiring: Wiring, name: str, window: Window, wire: StreamWire | Mirrored) -> int:
    """The index of the first frame that a window sees, its ends included."""
    first, stream = (wire.first, wire.stream) if isinstance(wire, Mirrored) else (wire.fact.offset, wire)
    goes_on = isinstance(wire, Mirrored) and wire.goes_on
    if window.ends is not None:
        first -= int(window.ends.before)
        goes_on = goes_on or window.ends.after != 0
    fact = stream.fact
    late = require_lag(wiring, fact.length, fact.rate, name) - fact.offset if goes_on else 0
    return first + max(0, late)


def _groups_late(window: Window, first: int) -> int:
    """After how many groups group 0 comes, where the first frame that it sees is at index ``first``."""
    return -(-(first + window.span - window.stride) // window.stride)


def _window_prefix(
    window: Window, stream: StreamWire, values: list[Array | None], groups: int, name: str
) -> Array:
    """The output frames before index 0: those of ``groups`` groups, all of whose frames are known in advance."""
    assert stream.fact.prefix is not None and window.op is not None
    frames = frames_at(stream.fact.prefix, stream.fact.axis, 0, window.needs(groups))
    operands = [frames if slot == window.source else value for slot, value in enumerate(values)]
    (result,) = evaluate_prefix(window.op, [value for value in operands if value is not None], name)
    return frames_at(result, window.axis, window.skip, groups * window.up)


def _wire_mirrored_window(
    wiring: Wiring,
    node: Node[TypedFact, Op],
    window: Window,
    inputs: list[AnyWire],
    wire: Mirrored,
    rate: Fraction,
    length: TDim,
) -> StreamWire:
    """Wire a window over a stream with mirrored ends; the window fills them into its own buffer.

    The first group that sees a frame before the first one waits until that frame's source has arrived.
    """
    assert window.op is not None
    name, before, outer = node.name, int(wire.ends.before), wire.outer
    front = 0 if outer is None else int(outer.before)
    require_size([before + front], name)
    fact = wire.stream.fact
    pulse = wiring.frames(fact.rate)
    groups = pulse // window.stride
    group_offset = max(0, _groups_late(window, wire.first))
    users = _first_users(window, range(front, front + before))
    while not all(
        ((group + group_offset) // groups + 1) * pulse
        > fact.offset + mirrored_frame(wire.ends, frame - front - before)
        for frame, group in users.items()
    ):
        group_offset += 1
    start = wire.first - group_offset * window.stride
    keep = max(0, -start)
    overlap = max(keep + look_back(name, wire.ends), -fact.offset)
    window_wire = wiring.window(wire.stream, overlap, name)
    op = FillEnds(fact.axis, overlap, fact.offset, fact.offset, fact.length, wire.ends.mode, keep=keep)
    frames = wiring.add(f"{name}.ends", op, [window_wire], fact)
    if outer is not None:
        begin = fact.offset - before
        dtype = wiring.graph.fact(frames).dtype
        head, tail = cast_table(outer.head, dtype), cast_table(outer.tail, dtype)
        around = FillEnds(
            axis=fact.axis,
            overlap=keep,
            offset=begin,
            shift=begin,
            length=wire.alone.length,
            mode="constant",
            fill=outer.fill,
            head=head,
            tail=tail,
            keep=keep,
        )
        frames = wiring.add(f"{name}.outer", around, [frames], fact)
    frames = wiring.crop(frames, fact.axis, start + keep, start + keep + window.needs(groups), name)
    out = StreamFact(window.axis, length, rate, group_offset * window.up + window.skip)
    reads = [frames if slot == window.source else static_outlet(other) for slot, other in enumerate(inputs)]
    return wiring.expect(StreamWire(wiring.add(name, window.op, reads, out), out), name)


def _first_users(window: Window, frames: range) -> dict[int, int]:
    """The first group that gives weight to each frame; later groups see the frame nearer to their start."""
    groups = {frame: max(0, -((window.span - 1 - frame) // window.stride)) for frame in frames}
    return {frame: group for frame, group in groups.items() if frame - group * window.stride >= window.blank}


def _after_skip(stream: StreamWire, skip: int) -> Array | None:
    prefix = stream.fact.prefix
    if prefix is None or stream.fact.offset + skip >= 0:
        return None
    return frames_at(prefix, stream.fact.axis, skip, prefix.shape[stream.fact.axis])
