"""Padding before a stream and after it."""

from fractions import Fraction

import numpy as np

from pulse.dim import TDim
from pulse.errors import PulsifyError
from pulse.facts import Array, DType, StreamFact
from pulse.ops.clock import frames_at
from pulse.ops.op import Ends
from pulse.ops.time_ends import FillEnds, padding_frame
from pulse.pulsify.graph_builder import PulsedGraphBuilder
from pulse.pulsify.lengths import lag
from pulse.pulsify.stream_wires import MirroredWire, StreamWire, require_size
from pulse.support.wording import count_of


def extend_ends(
    builder: PulsedGraphBuilder, name: str, ends: Ends, stream: StreamWire, length: TDim
) -> StreamWire | MirroredWire:
    """Pad a stream at its ends; constant frames now, mirrored ones when an op reads them."""
    if ends.mode == "constant":
        if ends.after != 0:
            stream = delay_by_lag(builder, stream, name)
        return _constant_ends(builder, name, ends, stream, int(ends.before), length)
    return MirroredWire(stream, ends, length)


def delay_by_lag(builder: PulsedGraphBuilder, stream: StreamWire, name: str) -> StreamWire:
    """Delay a stream by its lag, to send only frames that surely exist. Raises PulsifyError: no delay suffices."""
    lag_frames = require_lag(builder, stream.fact.length, stream.fact.rate, name)
    return builder.delay(stream, max(stream.fact.offset, lag_frames), name)


def require_lag(builder: PulsedGraphBuilder, length: TDim, rate: Fraction, name: str) -> int:
    """Return the lag of a wire. Raises PulsifyError: no delay suffices."""
    lag_frames = lag(length, rate, builder.symbol, builder.pulse)
    if lag_frames is None:
        raise PulsifyError(
            f"{name}: where its input ends ({count_of(length, 'frame')} at rate {rate}) is known only when the "
            "stream has ended; "
            "slice it to a constant length, or to one that keeps up with the stream"
        )
    return lag_frames


def _constant_ends(
    builder: PulsedGraphBuilder, name: str, ends: Ends, stream: StreamWire, before: int, length: TDim
) -> StreamWire:
    fact = stream.fact
    outlet = stream.outlet
    offset = fact.offset - before
    if ends.after != 0 or (before > 0 and fact.offset > 0):
        dtype = builder.graph.fact(outlet).dtype
        op = FillEnds(
            axis=fact.axis,
            overlap=0,
            offset=fact.offset,
            shift=fact.offset,
            length=fact.length,
            mode="constant",
            fill=ends.fill,
            head=cast_table(ends.head, dtype),
            tail=cast_table(ends.tail, dtype),
        )
        outlet = builder.add(f"{name}.ends", op, [outlet], fact)
    prefix = (
        frames_at(_padded_prefix(builder, ends, stream, before), fact.axis, 0, -offset)
        if offset < 0
        else None
    )
    return StreamWire(outlet, StreamFact(fact.axis, length, fact.rate, offset, prefix))


def _padded_prefix(builder: PulsedGraphBuilder, ends: Ends, stream: StreamWire, before: int) -> Array:
    axis = stream.fact.axis
    fact = builder.graph.fact(stream.outlet)
    shape = list(fact.sizes)
    shape[axis] = before
    require_size(shape, builder.graph.label(stream.outlet))
    head = np.full(shape, ends.fill, fact.dtype)
    if ends.head is not None:
        head[...] = ends.head
    parts = [head] if stream.fact.prefix is None else [head, stream.fact.prefix]
    return np.concatenate(parts, axis)


def write_mirrored_ends(builder: PulsedGraphBuilder, name: str, wire: MirroredWire) -> StreamWire:
    """Write mirrored frames into the stream, each in a pulse that already has its source frame."""
    if wire.outer is not None:
        inner = write_mirrored_ends(builder, name, wire.without_outer)
        surrounded = extend_ends(builder, f"{name}.outer", wire.outer, inner, wire.length)
        assert isinstance(surrounded, StreamWire)
        return surrounded
    fact, before = wire.stream.fact, int(wire.ends.before)
    require_size([before], name)
    pulse = builder.frames(fact.rate)
    lag_frames = require_lag(builder, fact.length, fact.rate, name) if wire.ends.after != 0 else 0
    offset = max(0, fact.offset - before, lag_frames - before)
    while not all(
        (j + offset) // pulse * pulse + pulse > fact.offset + mirrored_frame(wire.ends, j - before)
        for j in range(before)
    ):
        offset += 1
    overlap = offset - (fact.offset - before) + look_back(name, wire.ends)
    window = builder.window(wire.stream, overlap, name)
    op = FillEnds(fact.axis, overlap, fact.offset, offset + before, fact.length, wire.ends.mode)
    out = StreamFact(fact.axis, wire.length, fact.rate, offset)
    return builder.require_frames(StreamWire(builder.add(f"{name}.ends", op, [window], out), out), name)


def cast_table(table: Array | None, dtype: DType) -> Array | None:
    """Return the frames of a head or tail in the type of the stream; None stays None."""
    return None if table is None else table.astype(dtype, copy=False)


def look_back(name: str, ends: Ends) -> int:
    """Return the largest distance from a frame after the last one back to its source."""
    after = int(ends.after) if ends.after.is_const else ends.after.bounds()[1]
    if after is None:
        raise PulsifyError(
            f"{name}: {count_of(ends.after, 'frame')} of padding at the end grow with the stream; pad by a constant "
            "number"
        )
    return after * (1 if ends.mode == "edge" else 2)


def mirrored_frame(ends: Ends, frame: int) -> int:
    """Return the frame of the stream that fills a frame before the first."""
    return padding_frame(frame, 1, ends.mode)
