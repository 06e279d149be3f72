"""Convolutions, as window products; depthwise ones have their own instruction."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.conv import Conv, is_depthwise
from pulse.program.kernels.conv_depthwise import DepthwiseRow
from pulse.program.kernels.copy import FillRow
from pulse.program.kernels.matmul_finish import Finish
from pulse.program.lower.conv_ends import Piece, pieces_at_ends
from pulse.program.lower.matmul_finishing import Finishing, find_finishing
from pulse.program.lower.matmul_product import bias_of, emit_product, grid_offsets, stored_of
from pulse.program.lower.quantize_rows import unrounded_rows
from pulse.program.lower.shape_split import SplitChannels, split_channels
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value
from pulse.program.weights import Stored


def channels_last(cx: Lowering, value: Value, stream: int | None) -> Value:
    """Return the tensor [N, C, X...] with its channels innermost and the stream outermost."""
    if value.strides[1] == 1 or value.shape[1] == 1:
        return value
    return cx.order_axes(value, last_order(len(value.shape), stream))


def convolution_input(
    cx: Lowering, outlet: OutletId, split: SplitChannels | None, stream: int | None
) -> Value:
    """Return the input of a convolution, [N, C, X...]; the first piece of the channels if they are split."""
    if split is not None:
        return cx.floats(split.x, "a convolution")
    return channels_last(cx, cx.floats(cx.value(outlet), "a convolution"), stream)


def last_order(rank: int, stream: int | None) -> list[int]:
    """Return the axis order with the channels innermost and the stream outermost."""
    order = [axis for axis in range(rank) if axis != 1]
    if stream is not None and stream != 1:
        order.remove(stream)
        order.insert(0, stream)
    return [*order, 1]


def pad(cx: Lowering, x: Value, amounts: Sequence[tuple[int, int]], order: Sequence[int]) -> Value:
    """Pad a tensor with zeros; return it unchanged if it needs none."""
    if all(pair == (0, 0) for pair in amounts):
        return x
    shape = [before + size + after for size, (before, after) in zip(x.shape, amounts)]
    target = cx.temporary(shape, x.dtype, order)
    for margin in _margins(target, amounts, order):
        cx.emit(FillRow(dst=margin, size=margin.dtype.itemsize, count=margin.size, bits=0))
    inner = target
    for axis, (before, _) in enumerate(amounts):
        inner = inner.part(axis, before, before + x.shape[axis])
    cx.copy(x, inner)
    return target


def _margins(target: Value, amounts: Sequence[tuple[int, int]], order: Sequence[int]) -> list[Value]:
    """Return the parts that padding fills, if these are runs of memory; else the whole tensor."""
    axis = next(axis for axis in order if target.shape[axis] > 1 or amounts[axis] != (0, 0))
    if any(pair != (0, 0) for each, pair in enumerate(amounts) if each != axis):
        return [target]
    (before, after), size = amounts[axis], target.shape[axis]
    ends = target.part(axis, 0, before), target.part(axis, size - after, size)
    return [end for end in ends if end.size]


@lowers(Conv)
def lower_conv(cx: Lowering, node: PulsedNode, op: Conv) -> list[Value]:
    """Lower a convolution: rows are the output positions, taps the kernel positions."""
    stored = stored_of(cx, node, 1, "its kernel")
    return convolve(cx, node, op, stored, bias_of(cx, node, stored.codes.shape[0]))


def convolve(cx: Lowering, node: PulsedNode, op: Conv, stored: Stored, bias: Array) -> list[Value]:
    """Emit a convolution of the first input of a node."""
    outlet, unrounded = OutletId(node.id), unrounded_rows(cx, node.inputs[0])
    stream, sizes = cx.fact(outlet).stream, cx.fact(outlet).sizes
    axis = None if stream is None else stream.axis
    order = last_order(len(sizes), axis)
    pads = [(int(before), int(after)) for before, after in op.pads]
    may_split = unrounded is None and op.group == 1 and not np.any(pads)
    split = split_channels(cx, node.inputs[0]) if may_split else None
    x = convolution_input(cx, unrounded or node.inputs[0], split, axis)
    kernel = stored.codes.shape
    pieces = pieces_at_ends(op, kernel, x, sizes, pads)
    if pieces is None:
        x = pad(cx, x, [(0, 0), (0, 0), *pads], order)
        pieces = [Piece(2, 0, sizes[2], 0, range(kernel[2]))]
    after = find_finishing(cx, outlet, 1, gates=op.group == 1)
    y = after.place(cx, sizes, order)
    bias = bias if after.bias is None else bias + after.bias
    for piece in pieces:
        _emit_piece(
            cx=cx,
            op=op,
            stored=stored,
            bias=bias,
            x=x,
            split=split,
            y=y,
            after=after,
            piece=piece,
            rounds_rows=unrounded is not None,
        )
    after.set_value(cx, y)
    return [y]


def _emit_piece(
    cx: Lowering,
    op: Conv,
    stored: Stored,
    bias: Array,
    x: Value,
    split: SplitChannels | None,
    y: Value,
    after: Finishing,
    piece: Piece,
    rounds_rows: bool,
) -> None:
    """Emit a piece of the outputs along an axis that share their taps."""
    i = piece.axis - 2
    y_piece, begin = y.part(piece.axis, piece.start, piece.stop), piece.start * op.strides[i] - piece.before
    reach = (piece.stop - piece.start - 1) * op.strides[i] + (piece.taps.stop - 1) * op.dilations[i] + 1
    x = x.part(piece.axis, begin + piece.taps.start * op.dilations[i], begin + reach)
    steps = x.strides[2:]
    rows_x = grid_offsets(
        [x.strides[0], *(s * n for s, n in zip(op.strides, steps))], [y.shape[0], *y_piece.shape[2:]]
    )
    codes = stored.codes.take(piece.taps, piece.axis)
    taps = grid_offsets([d * n for d, n in zip(op.dilations, steps)], codes.shape[2:])

    axes = [0, *range(2, len(y.shape))]

    def rows(value: Value) -> Array:
        part = value.part(piece.axis, piece.start, piece.stop)
        return part.offsets(axes) + (part.offset - value.offset)

    if is_depthwise(op, stored.codes.shape):
        table = codes.reshape(op.group, -1).T
        finish = after.steps_on(cx, y, rows)
        emit_depthwise(
            cx=cx,
            x=x,
            rows_x=rows_x,
            taps=taps,
            table=table,
            bias=bias,
            y=y_piece,
            rows_y=y_piece.offsets(axes),
            finish=finish,
        )
        return
    per_in, per_out = codes.shape[1], codes.shape[0] // op.group
    for group in range(op.group):
        channels_out = slice(group * per_out, (group + 1) * per_out)
        matrix = codes[channels_out].reshape(per_out, per_in, -1).transpose(2, 1, 0).reshape(-1, per_out)
        inside = x if op.group == 1 else x.part(1, group * per_in, (group + 1) * per_in)
        outside = y_piece.part(1, channels_out.start, channels_out.stop)
        scales = stored.scales_of(channels_out.start, per_out)
        finish = after.steps_on(cx, y.part(1, channels_out.start, channels_out.stop), rows, channels_out)
        places, matrix = (taps, matrix) if split is None else split.spread(taps, matrix)
        to = outside.offsets(axes)
        emit_product(
            cx=cx,
            x=inside,
            rows_x=rows_x,
            taps=places,
            matrix=matrix,
            bias=bias[channels_out],
            y=outside,
            rows_y=to,
            scales=scales,
            finish=finish,
            rounds_rows=rounds_rows,
        )


def emit_depthwise(
    cx: Lowering,
    x: Value,
    rows_x: Array,
    taps: Array,
    table: Array,
    bias: Array,
    y: Value,
    rows_y: Array,
    finish: Finish,
) -> None:
    """Emit one depthwise window; ``table`` is [T, C]."""
    cx.emit(
        DepthwiseRow(
            x=x,
            W=cx.constant(np.ascontiguousarray(table)),
            bias=cx.constant(np.ascontiguousarray(bias)),
            y=y,
            M=len(rows_x),
            rows_x=cx.table(rows_x),
            rows_y=cx.table(rows_y),
            T=len(taps),
            taps=cx.table(taps),
            C=table.shape[1],
            finish=finish,
        )
    )
