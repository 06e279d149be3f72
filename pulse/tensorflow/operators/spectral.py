"""Fourier transforms and complex numbers, which are tensors with a last axis of two here."""

import numpy as np

from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.ops.concat import Concat
from pulse.ops.dims import broadcast_shapes
from pulse.ops.reduce import Reduce
from pulse.ops.shape import AddAxis, Expand, RemoveAxis
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


def pair(node: TensorflowNode, real: OutletId, imaginary: OutletId) -> OutletId:
    """Join two real tensors to a complex one."""
    shapes = [node.graph.fact(component).shape for component in (real, imaginary)]
    shape = broadcast_shapes(shapes, f"{node.wire_name}, its parts")
    rank = len(shape)
    parts: list[OutletId] = []
    for name, component in (("real", real), ("imaginary", imaginary)):
        if node.graph.fact(component).shape != shape:
            component = node.wire(Expand(shape), [component], f"{name}_wide")
        parts.append(node.wire(AddAxis(rank), [component], f"{name}_column"))
    return node.wire(Concat(rank), parts)


@tensorflow_op("Complex", complex_numbers=True)
def complex_(node: TensorflowNode) -> OutletId:
    """Join two parts to a complex tensor."""
    return pair(node, node.input(0), node.input(1))


@tensorflow_op("Real", "Imag", complex_numbers=True)
def part(node: TensorflowNode) -> OutletId:
    """Return one part of a complex tensor."""
    return node.complex_part(node.input(0), int(node.op_type == "Imag"), "")


@tensorflow_op("Conj", complex_numbers=True)
def conjugate(node: TensorflowNode) -> OutletId:
    """Negate the imaginary part."""
    signs = node.constant(np.array([1, -1], node.fact(0).dtype), "signs")
    return node.apply("mul", node.input(0), signs)


@tensorflow_op("ComplexAbs", complex_numbers=True)
def complex_abs(node: TensorflowNode) -> OutletId:
    """Wire the magnitude."""
    return node.wire(Reduce("l2", (node.fact(0).rank - 1,), False), [node.input(0)])


@tensorflow_op("Angle", complex_numbers=True)
def angle(node: TensorflowNode) -> OutletId:
    """Wire the phase: the angle of (real, imaginary)."""
    return node.apply("atan2", node.complex_part(node.input(0), 1), node.complex_part(node.input(0), 0))


def complex_product(node: TensorflowNode) -> OutletId:
    """Return (a + bi)(c + di)."""
    a, b = node.complex_part(node.input(0), 0, "a"), node.complex_part(node.input(0), 1, "b")
    c, d = node.complex_part(node.input(1), 0, "c"), node.complex_part(node.input(1), 1, "d")

    def times(x: OutletId, y: OutletId, name: str) -> OutletId:
        return node.apply("mul", x, y, suffix=name)

    real = node.apply("sub", times(a, c, "ac"), times(b, d, "bd"), suffix="real")
    imaginary = node.apply("add", times(a, d, "ad"), times(b, c, "bc"), suffix="imaginary")
    return pair(node, real, imaginary)


def _length(node: TensorflowNode) -> int:
    lengths = node.integers(1, "fft_length")
    if len(lengths) != 1 or lengths[0] < 1:
        raise node.error(f"its fft_length {lengths} must be one number above 0")
    return lengths[0]


@tensorflow_op("RFFT", complex_numbers=True)
def rfft(node: TensorflowNode) -> OutletId:
    """Wire the one-sided spectrum of the last axis, cut or filled with zeros to fft_length."""
    fact, length = node.fact(0), _length(node)
    column = node.wire(AddAxis(fact.rank), [node.input(0)], "column")
    points = node.constant(np.array(length, np.int64), "points")
    return wire_onnx(node, "DFT", [column, points], axis=fact.rank - 1, onesided=1)


@tensorflow_op("IRFFT", complex_numbers=True)
def irfft(node: TensorflowNode) -> OutletId:
    """Wire the real signal of a one-sided spectrum."""
    fact = node.fact(0)
    points = node.constant(np.array(_length(node), np.int64), "points")
    y = wire_onnx(node, "DFT", [node.input(0), points], "signal", axis=fact.rank - 2, onesided=1, inverse=1)
    return node.wire(RemoveAxis(fact.rank - 1), [y])


@tensorflow_op("FFT", "IFFT", complex_numbers=True)
def fft(node: TensorflowNode) -> OutletId:
    """Wire the spectrum of a complex signal, or the signal of a spectrum."""
    fact = node.fact(0)
    return wire_onnx(
        node, "DFT", [node.input(0), None], axis=fact.rank - 2, inverse=int(node.op_type == "IFFT")
    )
