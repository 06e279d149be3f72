"""Convolutions, as window products; depthwise ones have their own instruction."""

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.conv import Conv, is_depthwise
from pulse.program.kernels.conv_depthwise import DepthwiseRow
from pulse.program.lower.conv_ends import Piece, pieces_at_ends
from pulse.program.lower.matmul_epilogue import FusedEpilogue, find_epilogue
from pulse.program.lower.matmul_product import emit_product, find_bias, require_stored
from pulse.program.lower.matmul_windows import WindowProduct
from pulse.program.lower.pad import pad_axes
from pulse.program.lower.quantize_activations import unrounded_activations
from pulse.program.lower.shape_split import SplitChannels, split_channels
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView, grid_offsets
from pulse.program.weights import StoredWeight
from pulse.pulsify.network import PulsedNode
from pulse.support.record import record


def channels_last(lowering: Lowering, value: TensorView, stream: int | None) -> TensorView:
    """Return the tensor [N, C, X...] with its channels innermost and the stream outermost."""
    if value.strides[1] == 1 or value.shape[1] == 1:
        return value
    return lowering.order_axes(value, last_order(len(value.shape), stream))


def convolution_input(
    lowering: Lowering, outlet: OutletId, split: SplitChannels | None, stream: int | None
) -> TensorView:
    """Return the input of a convolution, [N, C, X...]; the first piece of the channels if they are split."""
    if split is not None:
        return lowering.require_f32(split.x, "a convolution")
    return channels_last(lowering, lowering.require_f32(lowering.value(outlet), "a convolution"), stream)


def last_order(rank: int, stream: int | None) -> list[int]:
    """Return the axis order with the channels innermost and the stream outermost."""
    order = [axis for axis in range(rank) if axis != 1]
    if stream is not None and stream != 1:
        order.remove(stream)
        order.insert(0, stream)
    return [*order, 1]


@lowers(Conv)
def lower_conv(lowering: Lowering, node: PulsedNode, op: Conv) -> list[TensorView]:
    """Emit a convolution: rows are the output positions, taps the kernel positions."""
    stored = require_stored(lowering, node, 1, "its kernel")
    return convolve(lowering, node, op, stored, find_bias(lowering, node, stored.codes.shape[0]))


@record
class _Convolution:
    """A convolution of x, its input, and the steps that follow it."""

    op: Conv
    stored: StoredWeight
    bias: Array
    x: TensorView
    split: SplitChannels | None
    y: TensorView
    fused: FusedEpilogue
    rounds_activations: bool


def convolve(
    lowering: Lowering, node: PulsedNode, op: Conv, stored: StoredWeight, bias: Array
) -> list[TensorView]:
    """Emit a convolution of the first input of a node."""
    outlet, unrounded = OutletId(node.id), unrounded_activations(lowering, node.inputs[0])
    stream, sizes = lowering.fact(outlet).stream, lowering.fact(outlet).sizes
    axis = None if stream is None else stream.axis
    order = last_order(len(sizes), axis)
    pads = [(int(before), int(after)) for before, after in op.pads]
    may_split = unrounded is None and op.group == 1 and not np.any(pads)
    split = split_channels(lowering, node.inputs[0]) if may_split else None
    x = convolution_input(lowering, unrounded or node.inputs[0], split, axis)
    kernel = stored.codes.shape
    pieces = pieces_at_ends(op, kernel, x, sizes, pads)
    if pieces is None:
        x = pad_axes(lowering, x, [(0, 0), (0, 0), *pads], order)
        pieces = [Piece(2, 0, sizes[2], 0, range(kernel[2]))]
    fused = find_epilogue(lowering, outlet, 1, gates=op.group == 1)
    y = fused.allocate(lowering, sizes, order)
    bias = bias if fused.bias is None else bias + fused.bias
    whole = _Convolution(
        op=op,
        stored=stored,
        bias=bias,
        x=x,
        split=split,
        y=y,
        fused=fused,
        rounds_activations=unrounded is not None,
    )
    for piece in pieces:
        _emit_piece(lowering, whole, piece)
    fused.set_value(lowering, y)
    return [y]


def _emit_piece(lowering: Lowering, whole: _Convolution, piece: Piece) -> None:
    """Emit a piece of the outputs along an axis that share their taps."""
    op, stored, y, fused = whole.op, whole.stored, whole.y, whole.fused
    i = piece.axis - 2
    y_piece, begin = y.part(piece.axis, piece.start, piece.stop), piece.start * op.strides[i] - piece.before
    reach = (piece.stop - piece.start - 1) * op.strides[i] + (piece.taps.stop - 1) * op.dilations[i] + 1
    x = whole.x.part(piece.axis, begin + piece.taps.start * op.dilations[i], begin + reach)
    steps = x.strides[2:]
    rows_x = grid_offsets(
        [x.strides[0], *(s * n for s, n in zip(op.strides, steps))], [y.shape[0], *y_piece.shape[2:]]
    )
    codes = stored.codes.take(piece.taps, piece.axis)
    taps = grid_offsets([d * n for d, n in zip(op.dilations, steps)], codes.shape[2:])
    axes = [0, *range(2, len(y.shape))]

    def rows(value: TensorView) -> Array:
        """Return the offset of each output of the piece in a tensor with the axes of the result."""
        part = value.part(piece.axis, piece.start, piece.stop)
        return part.offsets(axes) + (part.offset - value.offset)

    if is_depthwise(op, stored.codes.shape):
        window = WindowProduct(
            x=x,
            rows_x=rows_x,
            taps=taps,
            matrix=codes.reshape(op.group, -1).T,
            bias=whole.bias,
            y=y_piece,
            rows_y=y_piece.offsets(axes),
            epilogue=fused.steps_on(lowering, y, rows),
        )
        emit_depthwise(lowering, window)
        return
    per_in, per_out = codes.shape[1], codes.shape[0] // op.group
    for group in range(op.group):
        channels = slice(group * per_out, (group + 1) * per_out)
        matrix = codes[channels].reshape(per_out, per_in, -1).transpose(2, 1, 0).reshape(-1, per_out)
        x_group = x if op.group == 1 else x.part(1, group * per_in, (group + 1) * per_in)
        y_group = y_piece.part(1, channels.start, channels.stop)
        y_channels = y.part(1, channels.start, channels.stop)
        group_taps, matrix = (taps, matrix) if whole.split is None else whole.split.spread(taps, matrix)
        product = WindowProduct(
            x=x_group,
            rows_x=rows_x,
            taps=group_taps,
            matrix=matrix,
            bias=whole.bias[channels],
            y=y_group,
            rows_y=y_group.offsets(axes),
            scales=stored.scales_of(channels.start, per_out),
            epilogue=fused.steps_on(lowering, y_channels, rows, channels),
            rounds_activations=whole.rounds_activations,
        )
        emit_product(lowering, product)


def emit_depthwise(lowering: Lowering, window: WindowProduct) -> None:
    lowering.emit(
        DepthwiseRow(
            x=window.x,
            W=lowering.add_constant(np.ascontiguousarray(window.matrix)),
            bias=lowering.add_constant(np.ascontiguousarray(window.bias)),
            y=window.y,
            M=len(window.rows_x),
            rows_x=lowering.add_table(window.rows_x),
            rows_y=lowering.add_table(window.rows_y),
            T=len(window.taps),
            taps=lowering.add_table(window.taps),
            C=window.columns,
            epilogue=window.epilogue,
        )
    )
