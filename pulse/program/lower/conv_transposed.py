"""Transposed convolutions: the outputs of each phase of the strides are an ordinary window product."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv, ConvTranspose, is_depthwise
from pulse.ops.time import Delay
from pulse.program.lower.conv import convolution_input, convolve, emit_depthwise, last_order
from pulse.program.lower.matmul_epilogue import FusedEpilogue, find_epilogue
from pulse.program.lower.matmul_product import emit_product, find_bias, require_stored
from pulse.program.lower.matmul_windows import WindowProduct
from pulse.program.lower.pad import pad_axes
from pulse.program.lower.shape_split import SplitChannels, split_channels
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView, grid_offsets
from pulse.program.weights import StoredWeight
from pulse.pulsify.network import PulsedNode
from pulse.support.record import record

MIN_EPILOGUE_COLUMNS = 16
"""Minimum number of columns of a product that applies the following elementwise steps to its own rows."""


@record
class _Transposed:
    """A transposed convolution, its input padded by ``border`` at the start, and the steps that follow it."""

    op: ConvTranspose
    stored: StoredWeight
    bias: Array
    x: TensorView
    split: SplitChannels | None
    y: TensorView
    border: Sequence[int]
    fused: FusedEpilogue

    @property
    def axes(self) -> list[int]:
        """All axes but the channels."""
        return [0, *range(2, len(self.y.shape))]

    def firsts(self, axis: int, phase: int, taps: Sequence[int]) -> list[int]:
        """Return the input positions that ``taps`` of the kernel read for the first output of a phase."""
        op, i = self.op, axis - 2
        pad_before, stride, dilation = int(op.pads[i][0]), op.strides[i], op.dilations[i]
        return [(phase + pad_before - k * dilation) // stride + self.border[i] for k in taps]

    def offsets(self, firsts: Sequence[Sequence[int]]) -> Array:
        """Return the offsets of the taps, from the first positions along all spatial axes."""
        steps = self.x.strides[2:]
        offsets = [sum(f * step for f, step in zip(first, steps)) for first in itertools.product(*firsts)]
        return np.array(offsets, np.int64)

    def spread(self, taps: Array, matrix: Array) -> tuple[Array, Array]:
        """Spread taps and weights over the pieces of the channels."""
        return (taps, matrix) if self.split is None else self.split.spread(taps, matrix)


@lowers(ConvTranspose)
def lower_conv_transpose(lowering: Lowering, node: PulsedNode, op: ConvTranspose) -> list[TensorView]:
    """Emit one product if the outputs are adjacent in memory, else one for each phase."""
    stored = require_stored(lowering, node, 1, "its kernel")
    kernel = stored.codes.shape
    outlet = OutletId(node.id)
    bias = find_bias(lowering, node, kernel[1] * op.group)
    forward = _equivalent_convolution(
        op, lowering.fact(node.inputs[0]).sizes, lowering.fact(outlet).sizes, kernel
    )
    if forward is not None:
        flipped = np.flip(stored.codes, tuple(range(2, len(kernel))))
        return convolve(lowering, node, forward, StoredWeight(flipped, None, None), bias)
    stream, sizes = lowering.fact(outlet).stream, list(lowering.fact(outlet).sizes)
    order = last_order(len(sizes), None if stream is None else stream.axis)
    op, shift = _align_outputs(lowering, outlet, op, sizes, order)
    from_sizes = lowering.fact(node.inputs[0]).sizes
    reach = [_reach(op, i, kernel[i + 2], from_sizes[i + 2], sizes[i + 2]) for i in range(len(op.strides))]
    split = split_channels(lowering, node.inputs[0]) if op.group == 1 and not np.any(reach) else None
    x = convolution_input(lowering, node.inputs[0], split, order[0])
    x = pad_axes(lowering, x, [(0, 0), (0, 0), *reach], order)
    grouped_axis, order_y = _output_order(op, sizes, order)
    columns = sizes[1] if is_depthwise(op, kernel) else kernel[1]
    fused = FusedEpilogue(outlet, 1, sizes[1])
    if (grouped_axis is not None and shift is None) or columns >= MIN_EPILOGUE_COLUMNS:
        fused = find_epilogue(lowering, outlet, 1, gates=False)
    if shift is None:
        y = fused.allocate(lowering, sizes, order_y)
    else:
        y = lowering.allocate_temporary(sizes, x.dtype, order_y)
    whole = _Transposed(
        op=op,
        stored=stored,
        bias=bias if fused.bias is None else bias + fused.bias,
        x=x,
        split=split,
        y=y,
        border=[pad_before for pad_before, _ in reach],
        fused=fused,
    )
    _emit_outputs(lowering, whole, grouped_axis)
    if shift is not None:
        axis, first = shift
        y = y.part(axis, first, first + lowering.fact(outlet).sizes[axis])
    fused.set_value(lowering, y)
    return [y]


def _output_order(
    op: ConvTranspose, sizes: Sequence[int], order: Sequence[int]
) -> tuple[int | None, Sequence[int]]:
    """Return the grouped axis, if there is one, and the axis order of the result; ``order``: the input's."""
    grouped_axis = _find_grouped_axis(op, sizes, order)
    if grouped_axis is not None:
        return grouped_axis, order
    batch_outermost = last_order(len(sizes), None)  # moves a batch axis between the outputs outermost
    grouped_axis = _find_grouped_axis(op, sizes, batch_outermost)
    return grouped_axis, order if grouped_axis is None else batch_outermost


def _emit_outputs(lowering: Lowering, whole: _Transposed, grouped_axis: int | None) -> None:
    """Emit one product for groups of outputs if all tensors have them adjacent in memory, else one for each phase."""
    tensors = _tensors(whole.y, whole.fused)
    if grouped_axis is not None and all(_are_adjacent(value, grouped_axis) for value in tensors):
        _emit_stride_groups(lowering, whole, grouped_axis)
        return
    for phase in itertools.product(*(range(stride) for stride in whole.op.strides)):
        _emit_phase(lowering, whole, phase, [0] * len(phase))


def _align_outputs(
    lowering: Lowering, outlet: OutletId, op: ConvTranspose, sizes: list[int], order: Sequence[int]
) -> tuple[ConvTranspose, tuple[int, int] | None]:
    """Let the outputs of an input begin at a multiple of the stride, if one product can then compute them all.

    Some outputs are added before and after the others; ``sizes`` becomes the shape of the result with these. Return the
    op that computes it, and the axis and the number of outputs added before; None in place of these if nothing changes.
    """
    unpadded = replace(op, pads=tuple((TDim.of(0), TDim.of(0)) for _ in op.pads))
    axis, channels = _find_grouped_axis(unpadded, sizes, order), sizes[1]
    if axis is None or channels >= MIN_EPILOGUE_COLUMNS or lowering.is_read_later(outlet):
        return op, None
    readers = [lowering.graph.nodes[inlet.node].op for inlet in lowering.graph.outlet(outlet).successors]
    i = axis - 2
    stride, pad_before = op.strides[i], int(op.pads[i][0])
    shift = pad_before % stride
    if shift == 0 or any(isinstance(reader, (Concat, Delay)) for reader in readers):
        return op, None
    sizes[axis] = -(-(shift + sizes[axis]) // stride) * stride
    pads = tuple(
        (TDim.of(pad_before - shift), end) if other == i else (start, end)
        for other, (start, end) in enumerate(op.pads)
    )
    return replace(op, pads=pads), (axis, shift)


def _equivalent_convolution(
    op: ConvTranspose, from_sizes: Sequence[int], sizes: Sequence[int], kernel: Sequence[int]
) -> Conv | None:
    """Return the equivalent convolution with the flipped kernel, if the op is depthwise and without strides."""
    if not is_depthwise(op, kernel) or any(stride != 1 for stride in op.strides):
        return None
    pads: list[tuple[TDim, TDim]] = []
    for i, dilation in enumerate(op.dilations):
        span = (kernel[i + 2] - 1) * dilation
        pad_before = span - int(op.pads[i][0])
        pad_after = sizes[i + 2] - from_sizes[i + 2] + span - pad_before
        if pad_before < 0 or pad_after < 0:
            return None
        pads.append((TDim.of(pad_before), TDim.of(pad_after)))
    return Conv(op.strides, op.dilations, tuple(pads), op.group)


def _reach(op: ConvTranspose, i: int, kernel: int, frames: int, outputs: int) -> tuple[int, int]:
    """Return how far the outputs of a spatial axis extend before and after the input."""
    pad_before = int(op.pads[i][0])
    stride, dilation = op.strides[i], op.dilations[i]
    first = -(-(pad_before - (kernel - 1) * dilation) // stride)
    last = (outputs - 1 + pad_before) // stride
    return max(0, -first), max(0, last - (frames - 1))


@record
class _PhaseRows:
    """The outputs ``u = phase + stride*q`` of a transposed convolution, from q = begin on, along all spatial axes.

    phase   the phase of each axis
    begin   the first q of each axis
    taps    the positions of the kernel that they read, along each axis
    x       [M], the element of the input at which the window of each output begins
    x_taps  [T], the offset of each tap
    """

    phase: Sequence[int]
    begin: Sequence[int]
    taps: Sequence[Sequence[int]]
    x: Array
    x_taps: Array

    def offsets(self, whole: _Transposed, value: TensorView) -> Array:
        """Return the offset of each output in a tensor with the axes of the result."""
        part = value
        for i, (first, stride) in enumerate(zip(self.phase, whole.op.strides)):
            part = part.part(i + 2, first + stride * self.begin[i], part.shape[i + 2], stride)
        return part.offsets(whole.axes) + (part.offset - value.offset)


def _phase_rows(whole: _Transposed, phase: Sequence[int], begin: Sequence[int]) -> _PhaseRows | None:
    """Return the outputs of a phase, with inputs ``(u + before - k*dilation) / stride``; None if there are none."""
    op, x, kernel = whole.op, whole.x, whole.stored.codes.shape
    x_part, taps, firsts, counts = x, list[list[int]](), list[list[int]](), list[int]()
    for i, (first, stride) in enumerate(zip(phase, op.strides)):
        positions = [first + int(op.pads[i][0]) - k * op.dilations[i] for k in range(kernel[i + 2])]
        taps.append([k for k, position in enumerate(positions) if position % stride == 0][::-1])
        firsts.append(whole.firsts(i + 2, first, taps[-1]))
        counts.append(len(range(first + stride * begin[i], whole.y.shape[i + 2], stride)))
        x_part = x_part.part(i + 2, begin[i], x.shape[i + 2])
    if not all(counts):
        return None
    rows_x = grid_offsets([x.strides[0], *x.strides[2:]], [x.shape[0], *counts]) + (x_part.offset - x.offset)
    return _PhaseRows(phase, begin, taps, rows_x, whole.offsets(firsts))


def _emit_phase(lowering: Lowering, whole: _Transposed, phase: Sequence[int], begin: Sequence[int]) -> None:
    """Emit the outputs of a phase of the strides, from output ``begin`` of the phase on."""
    rows = _phase_rows(whole, phase, begin)
    if rows is None:
        return
    codes = whole.stored.codes
    weights = codes[(slice(None), slice(None), *np.ix_(*rows.taps))]
    if not is_depthwise(whole.op, codes.shape):
        _emit_phase_products(lowering, whole, rows, weights)
        return
    window = WindowProduct(
        x=whole.x,
        rows_x=rows.x,
        taps=rows.x_taps,
        matrix=weights.reshape(whole.op.group, -1).T,
        bias=whole.bias,
        y=whole.y,
        rows_y=rows.offsets(whole, whole.y),
        epilogue=whole.fused.steps_on(lowering, whole.y, partial(rows.offsets, whole)),
    )
    emit_depthwise(lowering, window)


def _emit_phase_products(lowering: Lowering, whole: _Transposed, rows: _PhaseRows, weights: Array) -> None:
    """Emit one product for each group of channels."""
    x, y, group_count = whole.x, whole.y, whole.op.group
    per_in, per_out = weights.shape[0] // group_count, weights.shape[1]
    for group in range(group_count):
        channels = slice(group * per_out, (group + 1) * per_out)
        part = weights[group * per_in : (group + 1) * per_in]
        matrix = part.reshape(per_in, per_out, -1).transpose(2, 0, 1).reshape(-1, per_out)
        y_group = y.part(1, channels.start, channels.stop)
        taps, matrix = whole.spread(rows.x_taps, matrix)
        product = WindowProduct(
            x=x if group_count == 1 else x.part(1, group * per_in, (group + 1) * per_in),
            rows_x=rows.x,
            taps=taps,
            matrix=matrix,
            bias=whole.bias[channels],
            y=y_group,
            rows_y=rows.offsets(whole, y_group),
            scales=whole.stored.scales_of(channels.start, per_out),
            epilogue=whole.fused.steps_on(lowering, y_group, partial(rows.offsets, whole), channels),
        )
        emit_product(lowering, product)


def _find_grouped_axis(op: ConvTranspose, sizes: Sequence[int], order: Sequence[int]) -> int | None:
    """Return the only axis with a stride, if the ``stride`` outputs of each of its inputs are adjacent in memory."""
    strided = [i for i, stride in enumerate(op.strides) if stride > 1] or [len(op.strides) - 1]
    if len(strided) > 1 or op.group > 1:
        return None
    i = strided[0]
    inner = order[list(order).index(i + 2) + 1 : -1]
    stride, pad_before = op.strides[i], int(op.pads[i][0])
    is_groupable = op.dilations[i] == 1 and pad_before % stride == 0 and sizes[i + 2] >= stride
    return i + 2 if is_groupable and all(sizes[axis] == 1 for axis in inner) else None


def _tensors(y: TensorView, fused: FusedEpilogue) -> list[TensorView]:
    """Return the result and the tensors that the following steps add."""
    return [y, *(step.operand for step in fused.steps if isinstance(step.operand, TensorView))]


def _are_adjacent(value: TensorView, axis: int) -> bool:
    """Return whether the channels of an axis are adjacent in memory."""
    channels = value.shape[1]
    return value.strides[axis] == channels and (value.strides[1] == 1 or channels == 1)


def _emit_stride_groups(lowering: Lowering, whole: _Transposed, axis: int) -> None:
    """Emit one product for the ``stride`` outputs of each input; phases compute the remaining ones at the end."""
    op, x, i = whole.op, whole.x, axis - 2
    stride, kernel = op.strides[i], whole.stored.codes.shape
    firsts = [whole.firsts(other, 0, range(kernel[other])[::-1]) for other in range(2, len(kernel))]
    taps = -(-kernel[axis] // stride)
    firsts[i] = whole.firsts(axis, 0, range(0, taps * stride, stride)[::-1])
    taps_x, matrix = whole.spread(whole.offsets(firsts), _stride_group_weights(whole, axis, taps))
    y, scales = _view_groups(whole.y, axis, stride), whole.stored.scales_of()
    steps = [replace(step, operand=_group_operand(step.operand, axis, stride)) for step in whole.fused.steps]
    fused = replace(whole.fused, channels=stride * whole.y.shape[1], steps=steps)

    def rows(value: TensorView) -> Array:
        """Return the offset of each group of outputs in a tensor with the axes of the result."""
        return value.offsets(whole.axes)

    product = WindowProduct(
        x=x,
        rows_x=grid_offsets([x.strides[0], *x.strides[2:]], [x.shape[0], *y.shape[2:]]),
        taps=taps_x,
        matrix=matrix,
        bias=np.tile(whole.bias, stride),
        y=y,
        rows_y=rows(y),
        scales=None if scales is None else np.tile(scales, stride),
        epilogue=fused.steps_on(lowering, y, rows),
    )
    emit_product(lowering, product)
    for phase in range(whole.y.shape[axis] % stride):
        phases, begin = [0] * len(op.strides), [0] * len(op.strides)
        phases[i], begin[i] = phase, whole.y.shape[axis] // stride
        _emit_phase(lowering, whole, phases, begin)


def _stride_group_weights(whole: _Transposed, axis: int, taps: int) -> Array:
    """Return the weights [taps * channels in, stride * channels out] of groups of ``stride`` outputs."""
    stride, codes = whole.op.strides[axis - 2], whole.stored.codes
    kernel = codes.shape
    full = np.zeros([*kernel[:axis], taps * stride, *kernel[axis + 1 :]], codes.dtype)
    full[(slice(None),) * axis + (slice(kernel[axis]),)] = codes
    groups = full.reshape(*kernel[:axis], taps, stride, *kernel[axis + 1 :])
    groups = np.flip(groups, tuple(other for other in range(2, groups.ndim) if other != axis + 1))
    return np.moveaxis(groups, (0, axis + 1, 1), (-3, -2, -1)).reshape(-1, stride * kernel[1])


def _view_groups(value: TensorView, axis: int, stride: int) -> TensorView:
    """View groups of ``stride`` neighbours along an axis as channels."""
    shape, strides = list(value.shape), list(value.strides)
    shape[1], shape[axis] = stride * shape[1], shape[axis] // stride
    strides[1], strides[axis] = 1, stride * strides[axis]
    return value.view(shape, strides)


def _group_operand(operand: TensorView | Array | None, axis: int, stride: int) -> TensorView | Array | None:
    """Return the operand of a step for groups of neighbours."""
    if isinstance(operand, TensorView):
        return _view_groups(operand, axis, stride)
    return None if operand is None else np.tile(operand, stride)
