"""Windows over a stream: history, phase, and the frames at its ends."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, StreamFact
from pulse.graph import OutletId
from pulse.ops.clock import frames_at
from pulse.ops.op import Ends, Relation, Window
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
from pulse.pulsify.graph_builder import PulsedGraphBuilder
from pulse.pulsify.stream_wires import (
    AnyWire,
    FreeWire,
    MirroredWire,
    StreamWire,
    evaluate_prefix,
    require_size,
    static_outlet,
)


def fix_offset(builder: PulsedGraphBuilder, wire: AnyWire, relation: Window | Ends, name: str) -> StreamWire:
    """Return a stream at a fixed offset; a free wire gets the offset without delay."""
    if isinstance(wire, StreamWire):
        return wire
    assert isinstance(wire, FreeWire)
    ends = relation.ends if isinstance(relation, Window) else relation
    if ends is not None and ends.after != 0:
        return wire.wire_at(max(0, require_lag(builder, wire.length, wire.rate, name)))
    if isinstance(relation, Window) and wire.first_frames(1) is not None:
        return wire.wire_at(-relation.span)
    return wire.wire_at(0)


def takes_mirrored(relation: Relation | None, wire: MirroredWire) -> bool:
    """Return whether an op fills in mirrored frames itself, or leaves them to the next window."""
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
    builder: PulsedGraphBuilder,
    name: str,
    window: Window,
    inputs: list[AnyWire],
    rate: Fraction,
    length: TDim,
) -> StreamWire:
    """Wire an op over a window: its ends, then the buffer; the offset is that of ``pulse.pulsify.schedule``.

    rate, length  rate and length of the output
    Raises        PulsifyError: no delay is long enough for its ends, or a buffer would be too large
    """
    window, inputs = _soonest_window(builder, name, window, inputs)
    wire = inputs[window.source]
    stretched = wire if isinstance(wire, MirroredWire) else fix_offset(builder, wire, window, name)
    if window.ends is not None and not window.ends.changes_nothing:
        extra = window.ends.before + window.ends.after
        if isinstance(stretched, MirroredWire):
            stretched = stretched.surround(window.ends, stretched.length + extra)
        else:
            stretched = extend_ends(builder, name, window.ends, stretched, stretched.fact.length + extra)
    if isinstance(stretched, MirroredWire) and stretched.has_frames_after:
        stretched = replace(stretched, stream=delay_by_lag(builder, stretched.stream, name))
    if window.op is None:
        stream = (
            write_mirrored_ends(builder, name, stretched)
            if isinstance(stretched, MirroredWire)
            else stretched
        )
        offset = stream.fact.offset + window.skip
        fact = replace(stream.fact, length=length, offset=offset, prefix=_after_skip(stream, window.skip))
        return StreamWire(stream.outlet, fact)
    if isinstance(stretched, MirroredWire):
        frames, group = _wire_mirrored_groups(builder, name, window, stretched)
        prefix = None
    else:
        frames, group, prefix = _wire_groups(builder, name, window, inputs, stretched)
    fact = StreamFact(window.axis, length, rate, group * window.up + window.skip, prefix)
    reads = [frames if slot == window.source else static_outlet(wire) for slot, wire in enumerate(inputs)]
    return builder.require_frames(StreamWire(builder.add(name, window.op, reads, fact), fact), name)


def _wire_groups(
    builder: PulsedGraphBuilder, name: str, window: Window, inputs: list[AnyWire], stream: StreamWire
) -> tuple[OutletId, int, Array | None]:
    """Wire whole groups of a stream whose ends are written; return them, the first one's index, and the prefix."""
    values = [builder.known_value(wire) if isinstance(wire, OutletId) else None for wire in inputs]
    if stream.fact.offset < 0 and any(
        value is None for slot, value in enumerate(values) if slot != window.source
    ):
        stream = builder.delay(stream, 0, name)
    first_group = _first_group_index(window, stream.fact.offset)
    start = stream.fact.offset - first_group * window.stride
    outlet = builder.window(stream, max(0, -start), name)
    groups = builder.frames(stream.fact.rate) // window.stride
    first = max(0, start)
    outlet = builder.crop(outlet, stream.fact.axis, first, first + window.needs(groups), name)
    has_prefix = first_group * window.up + window.skip < 0
    prefix = _window_prefix(window, stream, values, -first_group, name) if has_prefix else None
    return outlet, first_group, prefix


def _soonest_window(
    builder: PulsedGraphBuilder, name: str, window: Window, inputs: list[AnyWire]
) -> tuple[Window, list[AnyWire]]:
    """Return the window, or the trimmed one if its groups come sooner, and what its op reads."""
    wire, trimmed = inputs[window.source], window.trimmed
    if trimmed is None or not isinstance(wire, StreamWire | MirroredWire):
        return window, inputs

    def delay(candidate: Window) -> int:
        first_group = _first_group_index(candidate, _first_index(builder, name, candidate, wire))
        if isinstance(wire, MirroredWire):
            first_group = max(0, first_group)
        return first_group * candidate.up + candidate.skip

    if delay(trimmed.window) >= delay(window):
        return window, inputs
    kernel = builder.known_value(static_outlet(inputs[trimmed.operand]))
    assert kernel is not None
    stay = np.ascontiguousarray(frames_at(kernel, trimmed.axis, trimmed.first, trimmed.stop))
    taps = builder.add(f"{name}.taps", Const(stay), (), None)
    return trimmed.window, [
        taps if slot == trimmed.operand else operand for slot, operand in enumerate(inputs)
    ]


def _first_index(
    builder: PulsedGraphBuilder, name: str, window: Window, wire: StreamWire | MirroredWire
) -> int:
    """Return the index of the first frame that a window sees, its ends included."""
    first, stream = (
        (wire.first_index, wire.stream) if isinstance(wire, MirroredWire) else (wire.fact.offset, wire)
    )
    has_frames_after = isinstance(wire, MirroredWire) and wire.has_frames_after
    if window.ends is not None:
        first -= int(window.ends.before)
        has_frames_after = has_frames_after or window.ends.after != 0
    fact = stream.fact
    delay = require_lag(builder, fact.length, fact.rate, name) - fact.offset if has_frames_after else 0
    return first + max(0, delay)


def _first_group_index(window: Window, first: int) -> int:
    """Return the index of the first group, which sees frames from index ``first`` on."""
    return -(-(first + window.span - window.stride) // window.stride)


def _window_prefix(
    window: Window, stream: StreamWire, values: list[Array | None], groups: int, name: str
) -> Array:
    """Return the output frames before index 0: ``groups`` groups, all of whose input frames are known in advance."""
    assert stream.fact.prefix is not None and window.op is not None
    frames = frames_at(stream.fact.prefix, stream.fact.axis, 0, window.needs(groups))
    operands = [frames if slot == window.source else value for slot, value in enumerate(values)]
    (result,) = evaluate_prefix(window.op, [value for value in operands if value is not None], name)
    return frames_at(result, window.axis, window.skip, groups * window.up)


def _wire_mirrored_groups(
    builder: PulsedGraphBuilder, name: str, window: Window, wire: MirroredWire
) -> tuple[OutletId, int]:
    """Wire whole groups of a stream, and fill mirrored ends into their buffer; return them, and the first one's index.

    The first group that sees a frame before the first one waits until that frame's source has arrived.
    """
    before, outer = int(wire.ends.before), wire.outer
    front = 0 if outer is None else int(outer.before)
    require_size([before + front], name)
    fact = wire.stream.fact
    pulse = builder.frames(fact.rate)
    groups = pulse // window.stride
    first_group = max(0, _first_group_index(window, wire.first_index))
    users = _first_users(window, range(front, front + before))
    while not all(
        ((group + first_group) // groups + 1) * pulse
        > fact.offset + mirrored_frame(wire.ends, frame - front - before)
        for frame, group in users.items()
    ):
        first_group += 1
    start = wire.first_index - first_group * window.stride
    keep = max(0, -start)
    overlap = max(keep + look_back(name, wire.ends), -fact.offset)
    window_wire = builder.window(wire.stream, overlap, name)
    op = FillEnds(fact.axis, overlap, fact.offset, fact.offset, fact.length, wire.ends.mode, keep=keep)
    frames = builder.add(f"{name}.ends", op, [window_wire], fact)
    if outer is not None:
        frames = _fill_outer(builder, name, wire, outer, frames, keep)
    frames = builder.crop(frames, fact.axis, start + keep, start + keep + window.needs(groups), name)
    return frames, first_group


def _fill_outer(
    builder: PulsedGraphBuilder, name: str, wire: MirroredWire, outer: Ends, frames: OutletId, keep: int
) -> OutletId:
    """Fill in the constant frames around a mirror, in a window that keeps ``keep`` frames."""
    fact = wire.stream.fact
    first_offset = fact.offset - int(wire.ends.before)
    dtype = builder.graph.fact(frames).dtype
    op = FillEnds(
        axis=fact.axis,
        overlap=keep,
        offset=first_offset,
        shift=first_offset,
        length=wire.without_outer.length,
        mode="constant",
        fill=outer.fill,
        head=cast_table(outer.head, dtype),
        tail=cast_table(outer.tail, dtype),
        keep=keep,
    )
    return builder.add(f"{name}.outer", op, [frames], fact)


def _first_users(window: Window, frames: range) -> dict[int, int]:
    """Return the first group that uses each frame; later groups see the frame nearer to their start."""
    groups = {frame: max(0, -((window.span - 1 - frame) // window.stride)) for frame in frames}
    return {frame: group for frame, group in groups.items() if frame - group * window.stride >= window.blank}


def _after_skip(stream: StreamWire, skip: int) -> Array | None:
    prefix = stream.fact.prefix
    if prefix is None or stream.fact.offset + skip >= 0:
        return None
    return frames_at(prefix, stream.fact.axis, skip, prefix.shape[stream.fact.axis])
