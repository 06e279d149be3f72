"""Transposed convolutions: the outputs of each phase of the strides are an ordinary window product."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv, ConvTranspose, is_depthwise
from pulse.ops.time import Delay
from pulse.program.lower.conv import convolution_input, convolve, emit_depthwise, last_order, pad
from pulse.program.lower.matmul_finishing import Finishing, find_finishing
from pulse.program.lower.matmul_product import bias_of, emit_product, grid_offsets, stored_of
from pulse.program.lower.shape_split import SplitChannels, split_channels
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value
from pulse.program.weights import Stored
from pulse.support.record import record

MIN_FINISHED_COLUMNS = 16
"""The fewest columns with which a product applies the following elementwise steps to its own rows."""


@record
class _Transposed:
    """A transposed convolution, its input padded by ``border`` at the start, and the steps that follow it."""

    op: ConvTranspose
    stored: Stored
    bias: Array
    x: Value
    split: SplitChannels | None
    y: Value
    border: Sequence[int]
    after: Finishing

    @property
    def axes(self) -> list[int]:
        """All axes but the channels."""
        return [0, *range(2, len(self.y.shape))]

    def firsts(self, axis: int, phase: int, taps: Sequence[int]) -> list[int]:
        """Return the input positions that ``taps`` of the kernel read for the first output of a phase."""
        op, i = self.op, axis - 2
        before, stride, dilation = int(op.pads[i][0]), op.strides[i], op.dilations[i]
        return [(phase + before - k * dilation) // stride + self.border[i] for k in taps]

    def offsets(self, firsts: Sequence[Sequence[int]]) -> Array:
        """Return the offsets of the taps, from the first positions along all spatial axes."""
        steps = self.x.strides[2:]
        every = (sum(f * step for f, step in zip(first, steps)) for first in itertools.product(*firsts))
        return np.array(list(every), np.int64)

    def spread(self, taps: Array, matrix: Array) -> tuple[Array, Array]:
        """Spread taps and weights over the pieces of the channels."""
        return (taps, matrix) if self.split is None else self.split.spread(taps, matrix)


@lowers(ConvTranspose)
def lower_conv_transpose(cx: Lowering, node: PulsedNode, op: ConvTranspose) -> list[Value]:
    """Lower to one product if the outputs are neighbours in memory, else to one for each phase."""
    stored = stored_of(cx, node, 1, "its kernel")
    kernel = stored.codes.shape
    outlet = OutletId(node.id)
    bias = bias_of(cx, node, kernel[1] * op.group)
    forward = _forward(op, cx.fact(node.inputs[0]).sizes, cx.fact(outlet).sizes, kernel)
    if forward is not None:
        flipped = np.flip(stored.codes, tuple(range(2, len(kernel))))
        return convolve(cx, node, forward, Stored(flipped, None, None), bias)
    stream, sizes = cx.fact(outlet).stream, list(cx.fact(outlet).sizes)
    order = last_order(len(sizes), None if stream is None else stream.axis)
    op, shift = _align_outputs(cx, outlet, op, sizes, order)
    from_sizes = cx.fact(node.inputs[0]).sizes
    reach = [_reach(op, i, kernel[i + 2], from_sizes[i + 2], sizes[i + 2]) for i in range(len(op.strides))]
    split = split_channels(cx, node.inputs[0]) if op.group == 1 and not np.any(reach) else None
    x = convolution_input(cx, node.inputs[0], split, order[0])
    x = pad(cx, x, [(0, 0), (0, 0), *reach], order)
    grouped_axis, order_y = _find_grouped_axis(op, sizes, order), order
    if grouped_axis is None:
        order_y = last_order(len(sizes), None)  # move a batch axis between the outputs outermost
        grouped_axis = _find_grouped_axis(op, sizes, order_y)
        order_y = order if grouped_axis is None else order_y
    columns = sizes[1] if is_depthwise(op, kernel) else kernel[1]
    after = Finishing(outlet, 1, sizes[1])
    if (grouped_axis is not None and shift is None) or columns >= MIN_FINISHED_COLUMNS:
        after = find_finishing(cx, outlet, 1, gates=False)
    y = after.place(cx, sizes, order_y) if shift is None else cx.temporary(sizes, x.dtype, order_y)
    bias = bias if after.bias is None else bias + after.bias
    whole = _Transposed(
        op=op,
        stored=stored,
        bias=bias,
        x=x,
        split=split,
        y=y,
        border=[before for before, _ in reach],
        after=after,
    )
    if grouped_axis is not None and all(_are_adjacent(value, grouped_axis) for value in _tensors(y, after)):
        _neighbours_at_once(cx, whole, grouped_axis)
    else:
        for phase in itertools.product(*(range(stride) for stride in op.strides)):
            _one_phase(cx, whole, phase, [0] * len(phase))
    if shift is not None:
        axis, first = shift
        y = y.part(axis, first, first + cx.fact(outlet).sizes[axis])
    after.set_value(cx, y)
    return [y]


def _align_outputs(
    cx: Lowering, outlet: OutletId, op: ConvTranspose, sizes: list[int], order: Sequence[int]
) -> tuple[ConvTranspose, tuple[int, int] | None]:
    """Let the outputs of an input begin at a multiple of the stride, if one product can then compute them all.

    Some outputs are added in front of the axis and behind it; ``sizes`` becomes that of the result with these. Return
    the op that computes it, the axis and the number of outputs in front; None instead if nothing changes.
    """
    unpadded = replace(op, pads=tuple((TDim.of(0), TDim.of(0)) for _ in op.pads))
    axis, channels = _find_grouped_axis(unpadded, sizes, order), sizes[1]
    if axis is None or channels >= MIN_FINISHED_COLUMNS or cx.is_read_later(outlet):
        return op, None
    readers = [cx.graph.nodes[inlet.node].op for inlet in cx.graph.outlet(outlet).successors]
    i = axis - 2
    stride, before = op.strides[i], int(op.pads[i][0])
    shift = before % stride
    if shift == 0 or any(isinstance(reader, (Concat, Delay)) for reader in readers):
        return op, None
    sizes[axis] = -(-(shift + sizes[axis]) // stride) * stride
    pads = tuple(
        (TDim.of(before - shift), after) if each == i else (start, after)
        for each, (start, after) in enumerate(op.pads)
    )
    return replace(op, pads=pads), (axis, shift)


def _forward(
    op: ConvTranspose, from_sizes: Sequence[int], sizes: Sequence[int], kernel: Sequence[int]
) -> Conv | None:
    """Return the equivalent convolution with the flipped kernel, if the op is depthwise and without strides."""
    if not is_depthwise(op, kernel) or any(stride != 1 for stride in op.strides):
        return None
    pads: list[tuple[TDim, TDim]] = []
    for i, dilation in enumerate(op.dilations):
        span = (kernel[i + 2] - 1) * dilation
        before = span - int(op.pads[i][0])
        after = sizes[i + 2] - from_sizes[i + 2] + span - before
        if before < 0 or after < 0:
            return None
        pads.append((TDim.of(before), TDim.of(after)))
    return Conv(op.strides, op.dilations, tuple(pads), op.group)


def _reach(op: ConvTranspose, i: int, kernel: int, frames: int, outputs: int) -> tuple[int, int]:
    """Return how far the outputs of a spatial axis extend before and after the input."""
    before = int(op.pads[i][0])
    stride, dilation = op.strides[i], op.dilations[i]
    first = -(-(before - (kernel - 1) * dilation) // stride)
    last = (outputs - 1 + before) // stride
    return max(0, -first), max(0, last - (frames - 1))


def _one_phase(cx: Lowering, of: _Transposed, phase: Sequence[int], begin: Sequence[int]) -> None:
    """Emit the outputs ``u = phase + stride*q`` from q = begin on: inputs ``(u + before - k*dilation) / stride``."""
    op, x, y, stored = of.op, of.x, of.y, of.stored
    kernel, own_x = stored.codes.shape, x
    phase_taps: list[list[int]] = []
    firsts: list[list[int]] = []
    counts: list[int] = []
    for i, (first, stride) in enumerate(zip(phase, op.strides)):
        at = [first + int(op.pads[i][0]) - k * op.dilations[i] for k in range(kernel[i + 2])]
        phase_taps.append([k for k, position in enumerate(at) if position % stride == 0][::-1])
        firsts.append(of.firsts(i + 2, first, phase_taps[-1]))
        counts.append(len(range(first + stride * begin[i], y.shape[i + 2], stride)))
        own_x = own_x.part(i + 2, begin[i], x.shape[i + 2])
    if not all(counts):
        return
    rows_x = grid_offsets([x.strides[0], *x.strides[2:]], [x.shape[0], *counts]) + (own_x.offset - x.offset)
    taps = of.offsets(firsts)

    def rows(value: Value) -> Array:
        part = value
        for i, (first, stride) in enumerate(zip(phase, op.strides)):
            part = part.part(i + 2, first + stride * begin[i], part.shape[i + 2], stride)
        return part.offsets(of.axes) + (part.offset - value.offset)

    phase_weights = stored.codes[(slice(None), slice(None), *np.ix_(*phase_taps))]
    if is_depthwise(op, kernel):
        table = phase_weights.reshape(op.group, -1).T
        emit_depthwise(
            cx=cx,
            x=x,
            rows_x=rows_x,
            taps=taps,
            table=table,
            bias=of.bias,
            y=y,
            rows_y=rows(y),
            finish=of.after.steps_on(cx, y, rows),
        )
        return
    per_in, per_out = kernel[0] // op.group, kernel[1]
    for group in range(op.group):
        channels_out = slice(group * per_out, (group + 1) * per_out)
        part = phase_weights[group * per_in : (group + 1) * per_in]
        matrix = part.reshape(per_in, per_out, -1).transpose(2, 0, 1).reshape(-1, per_out)
        inside = x if op.group == 1 else x.part(1, group * per_in, (group + 1) * per_in)
        outside = y.part(1, channels_out.start, channels_out.stop)
        places, matrix = of.spread(taps, matrix)
        emit_product(
            cx=cx,
            x=inside,
            rows_x=rows_x,
            taps=places,
            matrix=matrix,
            bias=of.bias[channels_out],
            y=outside,
            rows_y=rows(outside),
            scales=stored.scales_of(channels_out.start, per_out),
            finish=of.after.steps_on(cx, outside, rows, channels_out),
        )


def _find_grouped_axis(op: ConvTranspose, sizes: Sequence[int], order: Sequence[int]) -> int | None:
    """Return the only axis with a stride, if the ``stride`` outputs of each of its inputs are adjacent in memory."""
    strided = [i for i, stride in enumerate(op.strides) if stride > 1] or [len(op.strides) - 1]
    if len(strided) > 1 or op.group > 1:
        return None
    i = strided[0]
    inner = order[list(order).index(i + 2) + 1 : -1]
    stride, before = op.strides[i], int(op.pads[i][0])
    whole = op.dilations[i] == 1 and before % stride == 0 and sizes[i + 2] >= stride
    return i + 2 if whole and all(sizes[axis] == 1 for axis in inner) else None


def _tensors(y: Value, after: Finishing) -> list[Value]:
    """Return the result and the tensors that the following steps add."""
    return [y, *(step.operand for step in after.steps if isinstance(step.operand, Value))]


def _are_adjacent(value: Value, axis: int) -> bool:
    """Whether the channels of an axis are adjacent in memory."""
    channels = value.shape[1]
    return value.strides[axis] == channels and (value.strides[1] == 1 or channels == 1)


def _neighbours_at_once(cx: Lowering, of: _Transposed, axis: int) -> None:
    """Emit one product for the ``stride`` outputs of each input; phases compute the remaining ones at the end."""
    op, stored, x, i = of.op, of.stored, of.x, axis - 2
    stride, channels = op.strides[i], of.y.shape[1]
    kernel = stored.codes.shape
    taps = -(-kernel[axis] // stride)
    full = np.zeros([*kernel[:axis], taps * stride, *kernel[axis + 1 :]], stored.codes.dtype)
    full[(slice(None),) * axis + (slice(kernel[axis]),)] = stored.codes
    groups = full.reshape(*kernel[:axis], taps, stride, *kernel[axis + 1 :])
    groups = np.flip(groups, tuple(each for each in range(2, groups.ndim) if each != axis + 1))
    matrix = np.moveaxis(groups, (0, axis + 1, 1), (-3, -2, -1)).reshape(-1, stride * channels)
    firsts = [of.firsts(each, 0, range(kernel[each])[::-1]) for each in range(2, len(kernel))]
    firsts[i] = of.firsts(axis, 0, range(0, taps * stride, stride)[::-1])
    y = _in_groups(of.y, axis, stride)
    rows_x = grid_offsets([x.strides[0], *x.strides[2:]], [x.shape[0], *y.shape[2:]])
    bias, scales = np.tile(of.bias, stride), stored.scales_of()
    scales = None if scales is None else np.tile(scales, stride)
    steps = [replace(step, operand=_of_groups(step.operand, axis, stride)) for step in of.after.steps]
    after = replace(of.after, channels=stride * channels, steps=steps)

    def rows(value: Value) -> Array:
        return value.offsets(of.axes)

    finish = after.steps_on(cx, y, rows)
    places, matrix = of.spread(of.offsets(firsts), matrix)
    emit_product(
        cx=cx,
        x=x,
        rows_x=rows_x,
        taps=places,
        matrix=matrix,
        bias=bias,
        y=y,
        rows_y=rows(y),
        scales=scales,
        finish=finish,
    )
    for phase in range(of.y.shape[axis] % stride):
        at, begin = [0] * len(op.strides), [0] * len(op.strides)
        at[i], begin[i] = phase, of.y.shape[axis] // stride
        _one_phase(cx, of, at, begin)


def _in_groups(value: Value, axis: int, stride: int) -> Value:
    """View groups of ``stride`` neighbours along an axis as channels."""
    shape, strides = list(value.shape), list(value.strides)
    shape[1], shape[axis] = stride * shape[1], shape[axis] // stride
    strides[1], strides[axis] = 1, stride * strides[axis]
    return value.view(shape, strides)


def _of_groups(operand: Value | Array | None, axis: int, stride: int) -> Value | Array | None:
    """Return the operand of a step for groups of neighbours."""
    if isinstance(operand, Value):
        return _in_groups(operand, axis, stride)
    return None if operand is None else np.tile(operand, stride)
