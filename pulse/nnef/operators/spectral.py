"""Fourier transforms of complex numbers, whose parts are the last axis, as tract has them."""

import numpy as np

from pulse.facts import I64
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads


def _complex_input(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    if x.rank < 2 or x.sizes[-1] not in (2, None):
        raise node.error("the last axis must have the real and the imaginary part")
    return x


@reads("tract_core_fft", parameters="input axis inverse=False")
def read_transform(node: NodeReader) -> NnefWire:
    """Neither direction is divided by the length; ONNX divides the inverse."""
    x, inverse = _complex_input(node), node.boolean("inverse")
    axis = node.axis("axis", x.rank - 1)
    transform = node.apply("DFT", x, suffix="scaled" if inverse else "", axis=axis, inverse=int(inverse))
    if not inverse:
        return transform
    size = x.sizes[axis]
    if size is None:
        raise node.error("an inverse transform of an axis whose size is not known is not supported")
    return node.apply("Mul", transform, size)


@reads("tract_core_stft", parameters="input axis frame stride window=[]")
def read_frames(node: NodeReader) -> NnefWire:
    """Read the spectra of x [N, T, 2], one for every ``stride`` samples: [N, frames, frame, 2]."""
    x, frame, stride = _complex_input(node), node.integer("frame"), node.integer("stride")
    if x.rank != 3 or node.integer("axis") != 1 or frame < 1 or stride < 1:
        raise node.error("it is supported along axis 1 of [N, T, 2], with positive numbers")
    window = node.arguments["window"]
    taps = np.ones(frame, x.dtype) if window in ([], False) else node.wire("window", x.dtype).value
    if taps is None or taps.shape != (frame,):
        raise node.error(f"its window must be {frame} constant numbers")
    step, length = node.constant(stride, I64, "step"), node.constant(frame, I64, "length")
    stored = node.graph.constant(taps, f"{node.targets[0]}.window")
    return node.add("STFT", [x, step, stored, length], x.dtype, [x.sizes[0], None, frame, 2], onesided=0)
