"""The algorithms of convolutions in numpy."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from pulse.facts import Array, TypedFact
from pulse.ops.arithmetic import accumulator_type
from pulse.ops.conv import Conv, finish_sums, kernel_spans, pad_spatial
from pulse.ops.op import Op
from pulse.program.backends.implementations import implements

FLOAT_TYPES = ("f16", "f32", "f64")


def _pads_vary(op: Op, facts: Sequence[TypedFact]) -> str:
    assert isinstance(op, Conv)
    return "" if all(dim.is_const for pair in op.pads for dim in pair) else "its padding depends on a length"


def _pad(op: Conv, x: Array) -> Array:
    return pad_spatial(x, op.pads, {}).astype(accumulator_type(x), copy=False)


def _groups(op: Conv, x: Array, w: Array) -> tuple[Array, Array]:
    """Reshape channels and kernels into groups: [N, G, C/G, X...] and [G, O/G, C/G, K...]."""
    by_group = x.reshape(len(x), op.group, -1, *x.shape[2:])
    return by_group, w.astype(x.dtype).reshape(op.group, -1, *w.shape[1:])


def _counts(op: Conv, x: Array, w: Array) -> list[int]:
    """Return the number of output frames along each spatial axis."""
    spans = kernel_spans(w.shape[2:], op.dilations)
    return [max(0, (size - span) // stride + 1) for size, span, stride in zip(x.shape[2:], spans, op.strides)]


@implements(Conv, kernel="direct", priority=-1, dtypes=FLOAT_TYPES, refuses=_pads_vary)
def convolve_directly(op: Conv, inputs: Sequence[Array]) -> list[Array]:
    """Sum over the taps of the kernel, one strided slice of the input for each."""
    x, w = _pad(op, inputs[0]), inputs[1]
    counts = _counts(op, x, w)
    by_group, kernels = _groups(op, x, w)
    y = np.zeros((len(x), op.group, kernels.shape[1], *counts), x.dtype)
    for tap in product(*map(range, w.shape[2:])):
        starts = [index * dilation for index, dilation in zip(tap, op.dilations)]
        taps = tuple(
            slice(start, start + (count - 1) * stride + 1 if count else start, stride)
            for start, count, stride in zip(starts, counts, op.strides)
        )
        part = by_group[(slice(None), slice(None), slice(None), *taps)]
        y += np.einsum("ngc...,goc->ngo...", part, kernels[(slice(None), slice(None), slice(None), *tap)])
    return finish_sums(y.reshape(len(x), len(w), *counts), inputs)


@implements(Conv, kernel="fft", priority=-2, dtypes=FLOAT_TYPES, refuses=_pads_vary)
def convolve_by_transforms(op: Conv, inputs: Sequence[Array]) -> list[Array]:
    """Multiply Fourier transforms in f64.

    Frames that are not finite or outside the stream are convolved directly: a transform would spread them.
    """
    x, w = _pad(op, inputs[0]), inputs[1]
    counts = _counts(op, x, w)
    if not np.isfinite(x).all() or 0 in counts:
        return convolve_directly(op, inputs)
    axes = tuple(range(3, 3 + len(counts)))
    by_group, kernels = _groups(op, x.astype(np.float64), w)
    spans = kernel_spans(w.shape[2:], op.dilations)
    spread = np.zeros((*kernels.shape[:3], *spans))
    spread[(Ellipsis, *(slice(None, None, dilation) for dilation in op.dilations))] = kernels
    sizes = x.shape[2:]
    transformed = np.fft.rfftn(by_group, sizes, axes)
    conjugate = np.conj(np.fft.rfftn(spread, sizes, axes))
    y = np.fft.irfftn(np.einsum("ngc...,goc...->ngo...", transformed, conjugate), sizes, axes)
    positions = tuple(slice(0, (count - 1) * stride + 1, stride) for count, stride in zip(counts, op.strides))
    y = y[(slice(None), slice(None), slice(None), *positions)]
    return finish_sums(y.reshape(len(x), len(w), *counts), inputs)


@implements(Conv, kernel="im2col", priority=-3, dtypes=FLOAT_TYPES, refuses=_pads_vary)
def convolve_by_windows(op: Conv, inputs: Sequence[Array]) -> list[Array]:
    """Multiply the kernels by a matrix of all windows, as the op's own definition does."""
    return op.eval(inputs, {})
