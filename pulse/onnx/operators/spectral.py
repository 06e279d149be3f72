"""Fourier transforms, and the windows and filter banks that go with them."""

import math
from typing import Any

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.conv import Conv, no_pads
from pulse.ops.matmul import MatMul
from pulse.ops.shape import AddAxis, Reshape, Transpose
from pulse.ops.spectral import Dft, dft_matrix, half_to_real
from pulse.support.wording import count_of

MAX_ELEMENTS = 1 << 25
"""Elements of a transform's matrix; longer transforms run offline and in numpy only."""


@onnx_op("STFT")
def stft(node: NodeContext) -> OutletId:
    """Convolve with the windowed basis of a Fourier transform; the hop is the stride."""
    signal = node.fact(0)
    parts = int(signal.shape[2]) if signal.rank == 3 and signal.shape[2].is_const else 1
    if signal.rank not in (2, 3) or parts not in (1, 2):
        raise node.error(
            f"the signal {signal} must be [batch, time, 1], or [batch, time, 2] if it is complex"
        )
    hop = node.integer_at(1, "frame_step")
    node.require(hop >= 1, f"its frame_step {hop} must be positive")
    window = _stft_window(node)
    length = len(window)
    onesided = node.flag("onesided", True)
    bins = length // 2 + 1 if onesided else length
    if 2 * length * parts * bins > MAX_ELEMENTS:
        raise node.error(
            f"frames of {length} samples are too long; their matrix has at most {MAX_ELEMENTS} elements"
        )
    basis = dft_matrix(length, parts, length, bins, inverse=False) * window[:, None, None, None]
    kernel = basis.transpose(2, 3, 1, 0).reshape(2 * bins, parts, length)
    order = node.wire(Transpose((0, 2, 1)) if signal.rank == 3 else AddAxis(1), [node.input(0)], "signal")
    weights = node.constant(kernel.astype(signal.dtype), "basis")
    rows = node.wire(Conv((hop,), (1,), no_pads(1)), [order, weights], "frames")
    shape = node.graph.fact(rows).shape
    bins_last = node.wire(Transpose((0, 2, 1)), [rows], "bins")
    return node.wire(Reshape((shape[0], shape[2], TDim.of(bins), TDim.of(2))), [bins_last])


def _stft_window(node: NodeContext) -> Array:
    length = node.take_elements(node.integer_at(3, "frame_length"), "frame_length") if node.has(3) else None
    if not node.has(2):
        if length is None:
            raise node.error("neither a window nor a frame_length is given")
        return np.ones(length)
    window = node.numbers(2, "window").astype(np.float64)
    if window.ndim != 1 or length not in (None, len(window)):
        raise node.error(
            f"a window of shape {list(window.shape)} does not fit frame_length {length}; pad the window with zeros"
        )
    return window


@onnx_op("DFT")
def dft(node: NodeContext) -> OutletId:
    """Multiply by a constant matrix if the axis has a constant length; the axis is an input since opset 20."""
    x = node.fact(0)
    axis = node.integer("axis", 1) if node.opset < 20 else -2
    if node.opset >= 20 and node.has(2):
        axis = node.integer_at(2, "axis")
    axis = node.axis(axis, x.rank)
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    if onesided and not inverse and x.shape[-1] != 1:
        raise node.error("a complex signal has no one-sided spectrum; export it with onesided=0")
    length = x.shape[axis]
    if node.has(1):
        lengths = node.dims(1, "dft_length")
        node.require(len(lengths) == 1, f"its dft_length must be one number, got {len(lengths)}")
        length = lengths[0]
    elif onesided and inverse:
        length = (length - 1) * 2
    op = Dft(axis, length, inverse, onesided)
    op.facts([x])
    frames, parts = x.shape[axis], int(x.shape[-1])
    is_constant = frames.is_const and length.is_const
    if not is_constant or not 0 < 4 * int(frames) * int(length) <= MAX_ELEMENTS:
        return node.wire(op, [node.input(0)])
    return _dft_product(node, op, min(int(frames), int(length)), parts)


def _dft_product(node: NodeContext, op: Dft, frames: int, parts: int) -> OutletId:
    x = node.fact(0)
    length = int(op.length)
    matrix = half_to_real(length, int(x.shape[op.axis]))[:, :parts] if op.inverse and op.onesided else None
    if matrix is None:
        bins = length // 2 + 1 if op.onesided else length
        matrix = np.zeros((int(x.shape[op.axis]), parts, bins, 2))
        matrix[:frames] = dft_matrix(frames, parts, length, bins, op.inverse)
    bins, results = matrix.shape[2:]
    rank = x.rank
    others = [axis for axis in range(rank - 1) if axis != op.axis]
    outer = tuple(x.shape[axis] for axis in others)
    operand = node.input(0)
    if op.axis != rank - 2:
        operand = node.wire(Transpose((*others, op.axis, rank - 1)), [operand], "last")
    flat = node.wire(Reshape((*outer, x.shape[op.axis] * parts)), [operand], "flat")
    basis = node.constant(
        matrix.reshape(int(x.shape[op.axis]) * parts, bins * results).astype(x.dtype), "basis"
    )
    product = node.wire(MatMul(), [flat, basis], "product")
    back = op.axis != rank - 2
    y = node.wire(Reshape((*outer, TDim.of(bins), TDim.of(results))), [product], "spectrum" if back else "")
    if not back:
        return y
    perm = [*range(op.axis), rank - 2, *range(op.axis, rank - 2), rank - 1]
    return node.wire(Transpose(tuple(perm)), [y])


WINDOWS = {
    "HannWindow": (0.5, 0.5),
    "HammingWindow": (25 / 46, 21 / 46),
    "BlackmanWindow": (0.42, 0.5, -0.08),
}
"""Operator -> the weight of a constant, and the weights of cosines of 1, 2 … periods that are subtracted from it."""


@onnx_op(*WINDOWS)
def cosine_window(node: NodeContext) -> OutletId:
    """Sum cosines; a periodic window is a symmetric one of one more sample without the last."""
    size = node.take_elements(node.integer_at(0, "size"), "size")
    steps = size if node.flag("periodic", True) else size - 1
    angles = 2 * np.pi * np.arange(size) / max(1, steps)
    first, *weights = WINDOWS[node.op_type]
    values: Array = np.full(size, first)
    for times, weight in enumerate(weights, 1):
        values = values - weight * np.cos(times * angles)
    return node.constant(values.astype(_output_type(node)))


def _output_type(node: NodeContext) -> Any:
    return onnx_dtype(node.integer("output_datatype", 1), f"{node.wire_name} ({node.op_type})")


@onnx_op("MelWeightMatrix")
def mel_weight_matrix(node: NodeContext) -> OutletId:
    """Return triangles between bins that are evenly spaced in mel, one column for each."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    bands, length, rate = (node.integer_at(slot, name) for slot, name in enumerate(names[:3]))
    low, high = (float(node.scalar(slot, names[slot])) for slot in (3, 4))
    bins = length // 2 + 1
    node.take_elements(bins * max(0, bands), "size")
    if bands < 1 or bins < 1 or rate < 1 or not -700 < low < math.inf or not -700 < high < math.inf:
        raise node.error(
            f"no filter bank has {count_of(bands, 'band')} from {low} to {high} Hz for {count_of(length, 'sample')} "
            f"at {rate} Hz"
        )
    mels = np.linspace(_mel(low), _mel(high), int(bands) + 3)[:-1]
    edges = np.floor((length + 1) * 700 * (10 ** (mels / 2595) - 1) / rate).astype(np.int64)
    if edges[0] < 0 or edges[-1] > bins:
        raise node.error(f"its edges {low} Hz and {high} Hz are not between 0 and {rate / 2} Hz")
    y = np.zeros((bins, int(bands)))
    for band, (left, centre, right) in enumerate(zip(edges, edges[1:], edges[2:])):
        bin_numbers = np.arange(bins)
        up = (bin_numbers >= left) & (bin_numbers <= centre)
        down = (bin_numbers > centre) & (bin_numbers < right)
        y[up, band] = (bin_numbers[up] - left) / (centre - left) if centre > left else 1.0
        y[down, band] = (right - bin_numbers[down]) / (right - centre) if right > centre else 0.0
    return node.constant(y.astype(_output_type(node)))


def _mel(hertz: float) -> float:
    return 2595 * math.log10(1 + hertz / 700)


@writes(Dft)
def write_dft(w: NodeWriter, op: Dft) -> str:
    """Multiply by the transform's matrix: its answers to one point each."""
    sizes, shape = w.sizes(), w.output_shape()
    points = (sizes[op.axis], sizes[-1])
    single = np.eye(math.prod(points)).reshape(-1, *points)
    (answers,) = Dft(1, op.length, op.inverse, op.onesided).eval([single], {})
    matrix = answers.reshape(math.prod(points), -1).astype(w.dtype())
    last = len(sizes) - 1
    perm = [axis for axis in range(last) if axis != op.axis] + [op.axis, last]
    frames_last = w.transpose(w.inputs[0], perm, "frames")
    rows = w.reshape(frames_last, (*(sizes[axis] for axis in perm[:-2]), math.prod(points)), "rows")
    product = w.emit("MatMul", [rows, w.constant(matrix, "matrix")], "bins")
    back = sorted(range(last + 1), key=lambda axis: perm[axis])
    in_place = back == list(range(last + 1))
    whole = w.reshape(product, [shape[axis] for axis in perm], "" if in_place else "whole")
    return whole if in_place else w.transpose(whole, back)
