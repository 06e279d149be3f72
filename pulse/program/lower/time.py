"""Ops that store frames or read the clock."""

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.time import Delay, LastFrames
from pulse.ops.time_ends import FillEnds
from pulse.ops.time_length import StreamEnd
from pulse.ops.time_position import Positions, TableRows
from pulse.program.kernels import time as kernels
from pulse.program.kernels.copy import MoveRow
from pulse.program.lower.elementwise import require_code
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import Region, TensorView
from pulse.pulsify.network import PulsedNode
from pulse.support.bounds import FAR_END
from pulse.support.wording import spell


def make_outermost(lowering: Lowering, value: TensorView, axis: int) -> TensorView:
    """Return the tensor with contiguous frames and their axis outermost: itself or a copy."""
    order = frame_order(value, axis)
    inner = value.part(axis, 0, 1)
    if inner.is_dense(order) and (value.shape[axis] == 1 or value.strides[axis] >= inner.size):
        return value
    return lowering.order_axes(value, order)


def frame_order(value: TensorView, axis: int) -> list[int]:
    """Return the axis order with one axis outermost and the others as in the tensor."""
    return [axis, *(other for other in value.order if other != axis)]


@lowers(Delay)
def lower_delay(lowering: Lowering, node: PulsedNode, op: Delay) -> list[TensorView]:
    """Emit a delay. Its history and newest pulse are contiguous; the step reads a window, then moves all back."""
    x = lowering.value(node.inputs[0])
    order = frame_order(x, op.axis)
    if any(step == 0 and size != 1 for size, step in zip(x.shape, x.strides)):
        order = lowering.stream_first(node.inputs[0])
    memory, history = lowering.delay_memory(node.id, op, x.shape, order, x.dtype)
    pulse = x.shape[op.axis]
    newest = memory.part(op.axis, history, history + pulse)
    if not (x.buffer is newest.buffer and x.offset == newest.offset and x.strides == newest.strides):
        lowering.copy(x, newest)
    frame = memory.size // memory.shape[op.axis] * x.dtype.itemsize
    tail = memory.part(op.axis, pulse, pulse + history)
    if history:
        lowering.emit_ending(MoveRow(dst=memory, src=tail, bytes=history * frame))
    return [memory.part(op.axis, 0, pulse + op.overlap)]


@lowers(FillEnds)
def lower_fill_ends(lowering: Lowering, node: PulsedNode, op: FillEnds) -> list[TensorView]:
    """Fill the ends, in place if nothing else reads the input."""
    outlet = OutletId(node.id)
    x = make_outermost(lowering, lowering.value(node.inputs[0]), op.axis)
    pulse = lowering.fact(outlet).sizes[op.axis] - op.keep
    run = x.size // max(1, x.shape[op.axis])
    order = frame_order(x, op.axis)
    y = x if _may_overwrite(lowering, node, op, x) else lowering.allocate_wire(outlet, order)
    head, head_frames = _add_frame_table(lowering, op.head, op.axis, order)
    tail, tail_frames = _add_frame_table(lowering, op.tail, op.axis, order)
    lowering.emit(
        kernels.FillEndsRow(
            x=x,
            y=y,
            clock=lowering.clock,
            end=lowering.length_register(op.length),
            P=pulse,
            overlap=op.overlap,
            offset=op.offset,
            shift=op.shift,
            mode=kernels.PADDING_MODES.index(op.mode),
            size=x.dtype.itemsize,
            run=run,
            step_x=_frame_step(x, op.axis, run),
            step_y=_frame_step(y, op.axis, run),
            bits=int(np.array([op.fill]).astype(x.dtype).view(f"i{x.dtype.itemsize}")[0]),
            head=head,
            head_frames=head_frames,
            tail=tail,
            tail_frames=tail_frames,
            keep=op.keep,
            in_place=y is x,
            first=0,
            frames=pulse + op.keep,
        )
    )
    return [y]


def _frame_step(value: TensorView, axis: int, run: int) -> int:
    """Return the elements from one frame to the next; ``run``, the size of a frame, if there is only one."""
    return value.strides[axis] if value.shape[axis] > 1 else run


def _add_frame_table(
    lowering: Lowering, table: Array | None, axis: int, order: list[int]
) -> tuple[TensorView, int]:
    """Add the known frames before or after a stream as a constant; return it and their number."""
    if table is None:
        return lowering.add_constant(np.zeros(1, np.float32)), 0
    return lowering.add_constant(np.ascontiguousarray(table), order), table.shape[axis]


def _may_overwrite(lowering: Lowering, node: PulsedNode, op: FillEnds, x: TensorView) -> bool:
    """Return whether the input is a temporary that only this op reads, and not a view."""
    graph = lowering.graph
    (outlet,) = node.inputs
    is_kept = lowering.is_read_later(outlet) or outlet in graph.inputs
    has_one_reader = len(graph.outlet(outlet).successors) == 1 and x.size * x.dtype.itemsize == x.buffer.size
    return (
        op.mode == "constant"
        and op.offset == op.shift
        and op.overlap == 0
        and has_one_reader
        and not is_kept
        and x.buffer.region is Region.ARENA
        and (lowering.owns(outlet, x))
    )


@lowers(LastFrames)
def lower_last_frames(lowering: Lowering, node: PulsedNode, op: LastFrames) -> list[TensorView]:
    """Emit the row that fills the memory; return the memory itself as the output."""
    x = make_outermost(lowering, lowering.value(node.inputs[0]), op.axis)
    order = frame_order(x, op.axis)
    shape = list(x.shape)
    shape[op.axis] = op.frames
    memory = lowering.allocate_state(np.zeros(shape, x.dtype), order)
    run = x.size // max(1, x.shape[op.axis])
    lowering.emit(
        kernels.LastFramesRow(
            x=x,
            memory=memory,
            clock=lowering.clock,
            end=lowering.length_register(op.length),
            P=x.shape[op.axis],
            offset=op.offset,
            F=op.frames,
            size=x.dtype.itemsize,
            run=run,
            step=_frame_step(x, op.axis, run),
        )
    )
    return [memory]


@lowers(Positions)
def lower_positions(lowering: Lowering, node: PulsedNode, op: Positions) -> list[TensorView]:
    """Emit a ramp from the clock."""
    y = lowering.allocate_wire(OutletId(node.id))
    integer = np.issubdtype(op.dtype, np.integer)
    lowering.emit(
        kernels.PositionsRow(
            y=y,
            clock=lowering.clock,
            P=op.frames,
            offset=op.offset,
            dtype=require_code(lowering, op.dtype),
            real_start=float(op.start),
            real_step=float(op.step_size),
            start=int(op.start) if integer else 0,
            step=int(op.step_size) if integer else 0,
        )
    )
    return [y]


@lowers(StreamEnd)
def lower_stream_end(lowering: Lowering, node: PulsedNode, op: StreamEnd) -> list[TensorView]:
    """Return the register itself."""
    return [lowering.length_register(op.frames, before=FAR_END).view((), ())]


@lowers(TableRows)
def lower_table_rows(lowering: Lowering, node: PulsedNode, op: TableRows) -> list[TensorView]:
    """Read rows of a table that is stored with its stream axis outermost."""
    table = lowering.known_value(node.inputs[0])
    if table is None:
        raise CompileError(f"{node.name}: the table must be constant; use {spell('backend', 'numpy')}")
    order = [op.axis, *(axis for axis in range(table.ndim) if axis != op.axis)]
    y = lowering.allocate_wire(OutletId(node.id), order)
    run = table.size // max(1, table.shape[op.axis])
    lowering.emit(
        kernels.TableLookupRow(
            table=lowering.add_constant(table, order),
            y=y,
            clock=lowering.clock,
            P=op.frames,
            offset=op.offset,
            start=op.start,
            step=op.step_size,
            rows=table.shape[op.axis],
            size=table.dtype.itemsize,
            run=run,
        )
    )
    return [y]
