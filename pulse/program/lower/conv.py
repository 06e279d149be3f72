"""Convolutions and their transposes: window products, with a way of their own for the depthwise ones."""

import itertools
from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.conv import Conv, ConvTranspose
from pulse.program.kernels.conv_depthwise import Depthwise
from pulse.program.kernels.copy import Fill
from pulse.program.lower.matmul_finishing import finishing
from pulse.program.lower.matmul_product import bias_of, emit_product, grid_offsets, stored_of, weights_of
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value
from pulse.program.weights import Stored, is_depthwise


def channels_last(cx: Lowering, value: Value, stream: int | None) -> Value:
    """The tensor [N, C, X...] with its channels innermost and the stream outermost."""
    if value.strides[1] == 1 or value.shape[1] == 1:
        return value
    return cx.ordered(value, last_order(len(value.shape), stream))


def last_order(rank: int, stream: int | None) -> list[int]:
    """Axes with the channels innermost and the stream outermost."""
    order = [axis for axis in range(rank) if axis != 1]
    if stream is not None and stream != 1:
        order.remove(stream)
        order.insert(0, stream)
    return [*order, 1]


def padded(cx: Lowering, x: Value, amounts: Sequence[tuple[int, int]], order: Sequence[int]) -> Value:
    """The tensor with zeros around it; itself where none are needed."""
    if all(pair == (0, 0) for pair in amounts):
        return x
    shape = [before + size + after for size, (before, after) in zip(x.shape, amounts)]
    target = cx.temporary(shape, x.dtype, order)
    cx.emit(Fill(dst=target, size=target.dtype.itemsize, count=target.size, bits=0))
    inner = target
    for axis, (before, _) in enumerate(amounts):
        inner = inner.part(axis, before, before + x.shape[axis])
    cx.copy(x, inner)
    return target


@lowers(Conv)
def lower_conv(cx: Lowering, node: PulsedNode, op: Conv) -> list[Value]:
    """Rows are the output positions, taps the kernel positions."""
    weights = weights_of(cx, node, 1, "its kernel")
    bias = bias_of(cx, node, weights.shape[0])
    outlet = OutletId(node.id)
    stream = cx.fact(outlet).stream
    axis = None if stream is None else stream.axis
    rank = len(op.strides)
    order = last_order(rank + 2, axis)
    x = channels_last(cx, cx.floats(cx.value(node.inputs[0]), "a convolution"), axis)
    x = padded(cx, x, [(0, 0), (0, 0), *((int(b), int(a)) for b, a in op.pads)], order)
    after = finishing(cx, outlet, 1, gates=op.group == 1)
    y = after.place(cx, cx.fact(outlet).sizes, order)
    bias = bias if after.bias is None else bias + after.bias
    kernel = weights.shape[2:]
    steps = x.strides[2:]
    rows_x = grid_offsets(
        [x.strides[0], *(s * n for s, n in zip(op.strides, steps))], [y.shape[0], *y.shape[2:]]
    )

    def rows(value: Value) -> Array:
        return value.offsets([0, *range(2, rank + 2)])

    taps = grid_offsets([d * n for d, n in zip(op.dilations, steps)], kernel)
    per_in, per_out = weights.shape[1], weights.shape[0] // op.group
    if is_depthwise(op, weights.shape):
        table = weights.reshape(op.group, -1).T
        cx.emit(
            Depthwise(
                x=x,
                W=cx.constant(np.ascontiguousarray(table)),
                bias=cx.constant(bias),
                y=y,
                M=len(rows_x),
                rows_x=cx.table(rows_x),
                rows_y=cx.table(rows(y)),
                T=len(taps),
                taps=cx.table(taps),
                C=op.group,
                finish=after.steps_on(cx, y, rows),
            )
        )
        after.settle(cx, y)
        return [y]
    stored = stored_of(cx, node, 1, "its kernel")
    for group in range(op.group):
        own = slice(group * per_out, (group + 1) * per_out)
        matrix = stored.codes[own].reshape(per_out, per_in, -1).transpose(2, 1, 0).reshape(-1, per_out)
        inside = x.part(1, group * per_in, (group + 1) * per_in)
        outside = y.part(1, own.start, own.stop)
        scales, finish = stored.scales_of(own.start, per_out), after.steps_on(cx, outside, rows, own)
        emit_product(cx, inside, rows_x, taps, matrix, bias[own], outside, rows(y), scales, finish)
    after.settle(cx, y)
    return [y]


@lowers(ConvTranspose)
def lower_conv_transpose(cx: Lowering, node: PulsedNode, op: ConvTranspose) -> list[Value]:
    """Output positions of one phase (their number modulo the strides) are an ordinary window product."""
    stored = stored_of(cx, node, 1, "its kernel")
    kernel = stored.codes.shape
    outlet = OutletId(node.id)
    bias = bias_of(cx, node, kernel[1] * op.group)
    stream = cx.fact(outlet).stream
    axis = None if stream is None else stream.axis
    rank = len(op.strides)
    order = last_order(rank + 2, axis)
    y = cx.new(outlet, order)
    reach = [
        _reach(op, i, kernel[i + 2], cx.fact(node.inputs[0]).sizes[i + 2], y.shape[i + 2])
        for i in range(rank)
    ]
    x = channels_last(cx, cx.floats(cx.value(node.inputs[0]), "a convolution"), axis)
    x = padded(cx, x, [(0, 0), (0, 0), *reach], order)
    if rank == 1 and _whole_groups(op, y):
        _all_phases_at_once(cx, op, stored, bias, x, y, reach[0][0])
        return [y]
    for phase in itertools.product(*(range(stride) for stride in op.strides)):
        _one_phase(cx, op, stored, bias, x, y, phase, [before for before, _ in reach])
    return [y]


def _reach(op: ConvTranspose, i: int, kernel: int, frames: int, outputs: int) -> tuple[int, int]:
    """How far before and after the input the outputs of a spatial axis look."""
    before = int(op.pads[i][0])
    stride, dilation = op.strides[i], op.dilations[i]
    first = -(-(before - (kernel - 1) * dilation) // stride)
    last = (outputs - 1 + before) // stride
    return max(0, -first), max(0, last - (frames - 1))


def _one_phase(
    cx: Lowering,
    op: ConvTranspose,
    stored: Stored,
    bias: Array,
    x: Value,
    y: Value,
    phase: Sequence[int],
    border: Sequence[int],
) -> None:
    """The outputs ``u = phase + stride*q``: input frame ``(u + before - k*dilation) / stride`` for each whole one."""
    rank = len(phase)
    counts = [len(range(phase[i], y.shape[i + 2], op.strides[i])) for i in range(rank)]
    chosen: list[list[int]] = []
    firsts: list[list[int]] = []
    for i in range(rank):
        at = [phase[i] + int(op.pads[i][0]) - k * op.dilations[i] for k in range(stored.codes.shape[i + 2])]
        chosen.append([k for k, position in enumerate(at) if position % op.strides[i] == 0])
        firsts.append([at[k] // op.strides[i] + border[i] for k in chosen[-1]])
    if not all(counts):
        return
    rows_x = grid_offsets([x.strides[0], *x.strides[2:]], [x.shape[0], *counts])
    rows_y = grid_offsets(
        [y.strides[0], *(step * stride for step, stride in zip(y.strides[2:], op.strides))],
        [y.shape[0], *counts],
    ) + sum(phase[i] * y.strides[i + 2] for i in range(rank))
    taps = np.array(
        [sum(f * step for f, step in zip(first, x.strides[2:])) for first in itertools.product(*firsts)],
        np.int64,
    )
    per_in, per_out = stored.codes.shape[0] // op.group, stored.codes.shape[1]
    kept = stored.codes[(slice(None), slice(None), *np.ix_(*chosen))]
    for group in range(op.group):
        part = kept[group * per_in : (group + 1) * per_in]
        matrix = part.reshape(per_in, per_out, -1).transpose(2, 0, 1).reshape(-1, per_out)
        inside = x.part(1, group * per_in, (group + 1) * per_in)
        outside = y.part(1, group * per_out, (group + 1) * per_out)
        emit_product(
            cx,
            inside,
            rows_x,
            taps,
            matrix,
            bias[group * per_out :][:per_out],
            outside,
            rows_y,
            stored.scales_of(group * per_out, per_out),
        )


def _whole_groups(op: ConvTranspose, y: Value) -> bool:
    """Whether the outputs are whole groups of ``stride`` frames that lie together in memory."""
    (stride,), (dilation,) = op.strides, op.dilations
    together = y.strides[2] == y.shape[1] and y.shape[0] == 1 and (y.strides[1] == 1 or y.shape[1] == 1)
    return (
        together
        and dilation == 1
        and op.group == 1
        and int(op.pads[0][0]) % stride == 0
        and y.shape[2] % stride == 0
    )


def _all_phases_at_once(
    cx: Lowering, op: ConvTranspose, stored: Stored, bias: Array, x: Value, y: Value, border: int
) -> None:
    """One product makes the ``stride`` output frames of a group: they are neighbours in memory."""
    (stride,) = op.strides
    channels_in, channels, kernel = stored.codes.shape
    taps = -(-kernel // stride)
    full = np.zeros((channels_in, channels, taps * stride), stored.codes.dtype)
    full[:, :, :kernel] = stored.codes
    groups = full.reshape(channels_in, channels, taps, stride)[:, :, ::-1]
    matrix = groups.transpose(2, 0, 3, 1).reshape(taps * channels_in, stride * channels)
    first = int(op.pads[0][0]) // stride - (taps - 1) + border
    rows = np.arange(y.shape[2] // stride, dtype=np.int64)
    rows_x = (rows + first) * x.strides[2]
    offsets = np.arange(taps, dtype=np.int64) * x.strides[2]
    own, scales = np.tile(bias, stride), stored.scales_of()
    scales = None if scales is None else np.tile(scales, stride)
    emit_product(cx, x, rows_x, offsets, matrix, own, y, rows * stride * channels, scales)
