"""Convolutions, their transposes and matrix products: all as window products.

A window product takes, for each output row, T segments of K neighbouring floats of the input: the taps of a
convolution, each over its channels. So channels are innermost in memory, and time outermost.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.conv import Conv, ConvTranspose
from pulse.ops.matmul import MatMul
from pulse.program.dft_basis import DftBasis, find_dft_basis, tables
from pulse.program.kernels.copy import Fill
from pulse.program.kernels.depthwise import Depthwise
from pulse.program.kernels.finish import NO_FINISH, Finish
from pulse.program.kernels.fourier import Fourier
from pulse.program.kernels.matmul import Matmul
from pulse.program.kernels.product import Product, pack_product
from pulse.program.lower.finishing import finishing
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value
from pulse.program.weights import Stored, is_depthwise, packed_operand, stored_operand
from pulse.wording import spell


def weights_of(cx: Lowering, node: PulsedNode, slot: int, what: str) -> Array:
    """A constant f32 operand that is not empty. Raises CompileError."""
    value = cx.known(node.inputs[slot])
    if value is not None and not value.size:
        raise CompileError(f"{node.name} ({node.op.name}): {what} is empty; use {spell('backend', 'numpy')}")
    if value is None or value.dtype != np.float32:
        raise CompileError(
            f"{node.name} ({node.op.name}): {what} must be a constant of f32; use {spell('backend', 'numpy')}"
        )
    return value


def stored_of(cx: Lowering, node: PulsedNode, slot: int, what: str) -> Stored:
    """The same in the program's form of weights. Raises CompileError."""
    weights_of(cx, node, slot, what)
    facts = [cx.fact(operand) for operand in node.inputs]
    stored = stored_operand(node.name, node.op, facts, slot, cx.form)
    assert stored is not None
    return stored


def bias_of(cx: Lowering, node: PulsedNode, channels: int) -> Array:
    """The optional third operand, zeros where there is none."""
    if len(node.inputs) < 3:
        return np.zeros(channels, np.float32)
    return weights_of(cx, node, 2, "its bias")


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


def emit_product(
    cx: Lowering,
    x: Value,
    rows_x: Array,
    taps: Array,
    matrix: Array,
    bias: Array,
    y: Value,
    rows_y: Array,
    scales: Array | None = None,
    finish: Finish = NO_FINISH,
) -> None:
    """One window product; ``matrix`` is [T*K, N], weights or their codes; neighbouring taps are merged.

    scales  [N] where the codes are int8
    finish  the steps that follow, see ``Finishing.steps_on``
    """
    depth = matrix.shape[0] // max(1, len(taps))
    found = None if bias.any() or scales is not None else find_dft_basis(matrix)
    if found is not None:
        depths: Array = np.arange(depth, dtype=np.int64)
        places: Array = np.add.outer(np.asarray(taps, np.int64), depths).ravel()
        _emit_fourier(cx, found, x, rows_x, places, y, rows_y, matrix.shape[1], finish)
        return
    if len(taps) > 1 and np.array_equal(np.diff(taps), np.full(len(taps) - 1, depth)):
        taps, depth = taps[:1], depth * len(taps)
    cx.emit(
        Product(
            x=x,
            W=cx.constant(pack_product(np.ascontiguousarray(matrix))),
            bias=cx.constant(np.ascontiguousarray(bias)),
            y=y,
            M=len(rows_x),
            rows_x=cx.table(rows_x),
            rows_y=cx.table(rows_y),
            T=len(taps),
            taps=cx.table(taps),
            K=depth,
            N=matrix.shape[1],
            accumulate=False,
            scales=None if scales is None else cx.constant(np.ascontiguousarray(scales)),
            finish=finish,
        )
    )


def _emit_fourier(
    cx: Lowering,
    found: DftBasis,
    x: Value,
    rows_x: Array,
    places: Array,
    y: Value,
    rows_y: Array,
    columns: int,
    finish: Finish,
) -> None:
    """A product with a DFT basis; ``places``: offset of each of its rows in x."""
    first, second, w1, turns, w2 = tables(found)
    points, bins = found.points, found.bins
    nowhere = np.zeros(1, np.int64)
    from_re, from_im = places[points.re], nowhere if points.im is None else places[points.im]
    to_im = nowhere if bins.im is None else bins.im
    w1_at, turns_at, w2_at = (cx.constant(table) for table in (w1, turns, w2))
    ones = np.ones(1)
    cx.emit(
        Fourier(
            x=x,
            y=y,
            scratch=cx.temporary((2 * first * second + 2 * turns.size,), x.dtype),
            M=len(rows_x),
            rows_x=cx.table(rows_x),
            rows_y=cx.table(rows_y),
            R=points.count,
            N1=first,
            N2=second,
            P=w1.shape[2],
            w1=w1_at,
            turns=turns_at,
            w2=w2_at,
            from_re=cx.table(from_re),
            from_im=cx.table(from_im),
            scales=cx.constant(points.factors.astype(np.float32)),
            K=bins.count,
            to_re=cx.table(bins.re),
            to_im=cx.table(to_im),
            factors=cx.constant(bins.factors.astype(np.float32)),
            has_im=points.im is not None,
            wants_im=bins.im is not None,
            near_re=neighbours_from(places[points.re], points.factors[0]),
            near_im=neighbours_from(from_im, points.factors[1]),
            next_re=neighbours_from(bins.re, ones) == 0,
            next_im=neighbours_from(to_im, ones) == 0,
            columns=columns,
            finish=finish,
        )
    )


def neighbours_from(places: Array, factors: Array) -> int:
    """The first place from which on each is followed by its neighbour, those before it counting nothing; or -1."""
    first = int((factors != 0).argmax())
    return first if (np.diff(places[first:]) == 1).all() else -1


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
    rows_x = _positions(
        [x.strides[0], *(s * n for s, n in zip(op.strides, steps))], [y.shape[0], *y.shape[2:]]
    )

    def rows(value: Value) -> Array:
        return value.offsets([0, *range(2, rank + 2)])

    taps = _positions([d * n for d, n in zip(op.dilations, steps)], kernel)
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


def _positions(steps: Sequence[int], sizes: Sequence[int]) -> Array:
    """Offsets of every position of some axes; the last axis fastest."""
    total = np.zeros((), np.int64)
    for step, size in zip(steps, sizes):
        total = total[..., None] + np.arange(size, dtype=np.int64) * step
    return total.ravel()


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
    rows_x = _positions([x.strides[0], *x.strides[2:]], [x.shape[0], *counts])
    rows_y = _positions(
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


@lowers(MatMul)
def lower_matmul(cx: Lowering, node: PulsedNode, op: MatMul) -> list[Value]:
    """A constant matrix on either side is packed; otherwise a batched product of two tensors."""
    outlet = OutletId(node.id)
    facts = [cx.fact(operand) for operand in node.inputs]
    side = packed_operand(facts)
    if side is None:
        return [_batched(cx, node, outlet)]
    stored = stored_of(cx, node, side, "its matrix")
    x = cx.floats(cx.value(node.inputs[1 - side]), "a matrix product")
    if side == 1:
        return [_rows_product(cx, outlet, cx.innermost(x, facts[0].rank - 1), stored)]
    return [_columns_product(cx, outlet, cx.innermost(x, facts[1].rank - 2), stored)]


def _rows_product(cx: Lowering, outlet: OutletId, x: Value, stored: Stored) -> Value:
    """y[..., n] = sum_k x[..., k] matrix[k, n]"""
    last = len(x.shape) - 1
    return _matrix_product(cx, outlet, x, stored.codes, stored.scales_of(), last, list(range(last)))


def _columns_product(cx: Lowering, outlet: OutletId, x: Value, stored: Stored) -> Value:
    """y[..., m, n] = sum_k matrix[m, k] x[..., k, n]: rows of the product are the columns n"""
    rank = len(x.shape)
    rows = [*range(rank - 2), rank - 1]
    return _matrix_product(cx, outlet, x, stored.codes.T, stored.scales_of(), rank - 2, rows)


def _matrix_product(
    cx: Lowering,
    outlet: OutletId,
    x: Value,
    matrix: Array,
    scales: Array | None,
    columns: int,
    rows: Sequence[int],
) -> Value:
    """The axis ``columns`` of x times a matrix, at every position of the axes ``rows``."""
    after = finishing(cx, outlet, columns, gates=True)
    order = [axis for axis in x.order if axis != columns] + [columns]
    y = after.place(cx, cx.fact(outlet).sizes, order)
    bias = np.zeros(matrix.shape[1], np.float32) if after.bias is None else after.bias

    def rows_of(value: Value) -> Array:
        return value.offsets(rows)

    finish = after.steps_on(cx, y, rows_of)
    tap = np.zeros(1, np.int64)
    emit_product(cx, x, rows_of(x), tap, matrix, bias, y, rows_of(y), scales, finish)
    after.settle(cx, y)
    return y


def _batched(cx: Lowering, node: PulsedNode, outlet: OutletId) -> Value:
    a, b = (cx.floats(cx.value(operand), "a matrix product") for operand in node.inputs)
    a = a.view((1, *a.shape), (0, *a.strides)) if len(a.shape) == 1 else a
    b = b.view((*b.shape, 1), (*b.strides, 0)) if len(b.shape) == 1 else b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    target = cx.new(outlet, None)
    y = target
    if len(cx.fact(node.inputs[0]).shape) == 1:
        y = y.view((*y.shape[:-1], 1, y.shape[-1]), (*y.strides[:-1], 0, y.strides[-1])) if y.shape else y
        y = y if len(cx.fact(node.inputs[1]).shape) > 1 else target.view((1, 1), (0, 0))
    elif len(cx.fact(node.inputs[1]).shape) == 1:
        y = y.view((*y.shape, 1), (*y.strides, 0))
    batch_a, batch_b, batch_y = (cx.table(_batch_offsets(value, batch)) for value in (a, b, y))
    am, ak = a.strides[-2:]
    bk, bn = b.strides[-2:]
    ym, yn = y.strides[-2:]
    cx.emit(
        Matmul(
            a=a,
            b=b,
            y=y,
            B=math.prod(batch),
            batch_a=batch_a,
            batch_b=batch_b,
            batch_y=batch_y,
            M=m,
            K=k,
            N=n,
            am=am,
            ak=ak,
            bk=bk,
            bn=bn,
            ym=ym,
            yn=yn,
        )
    )
    return target


def _batch_offsets(value: Value, batch: Sequence[int]) -> Array:
    lead = len(batch) - (len(value.shape) - 2)
    steps = [0] * lead + [s if n != 1 else 0 for n, s in zip(value.shape[:-2], value.strides[:-2])]
    return _positions(steps, batch)
