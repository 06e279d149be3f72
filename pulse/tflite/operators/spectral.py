"""Spectra: between the operators that support complex numbers, these are a last axis of real and imaginary parts."""

from pulse.dim import ZERO, TDim
from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.ops.conv import NO_PAD
from pulse.ops.pad import Pad
from pulse.ops.reduce import Reduce
from pulse.ops.shape import AddAxis
from pulse.ops.slice import Slice
from pulse.support.wording import count_of
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


@tflite_op("RFFT2D")
def rfft2d(node: TfliteNode) -> OutletId:
    """Transform the last two axes, cut or padded with zeros to the given lengths."""
    rows, columns = node.integers(1, "lengths") if node.fact(1).shape == (TDim.of(2),) else (0, 0)
    rank = node.fact(0).rank
    if rows < 1 or columns < 1 or rank < 2:
        raise node.error(f"needs 2 positive lengths and 2 or more axes, not {rows}, {columns} and {rank}")
    x = _fit_length(node, _fit_length(node, node.values(0), rank - 2, rows), rank - 1, columns)
    pairs = node.wire(AddAxis(rank), [x], "pairs")
    y = wire_onnx(node, "DFT", [pairs], "columns", axis=rank - 1, onesided=1)
    return node.name_result(y if rows == 1 else wire_onnx(node, "DFT", [y], "rows", axis=rank - 2))


def _fit_length(node: TfliteNode, x: OutletId, axis: int, length: int) -> OutletId:
    fact = node.graph.fact(x)
    missing = length - fact.shape[axis]
    if not missing.is_const:
        raise node.error(
            f"axis {axis} has {count_of(fact.shape[axis], 'entry', 'entries')}; their number must be constant"
        )
    if int(missing) < 0:
        return node.wire(Slice(axis, TDim.of(0), TDim.of(length)), [x], f"cut{axis}")
    if int(missing) == 0:
        return x
    pads = tuple((ZERO, missing) if index == axis else NO_PAD for index in range(fact.rank))
    return node.wire(Pad(pads), [x], f"filled{axis}")


def _complex_input(node: TfliteNode) -> OutletId:
    if node.input_tensor(0).type_name != "COMPLEX64":
        raise node.error(f"its input is {node.input_tensor(0).type_name}, not COMPLEX64")
    return node.input(0)


@tflite_op("REAL", "IMAG", complex_numbers=True)
def part(node: TfliteNode) -> OutletId:
    """Return one part of a complex number."""
    return node.complex_part(_complex_input(node), int(node.op_type == "IMAG"), "")


@tflite_op("COMPLEX_ABS", complex_numbers=True)
def complex_abs(node: TfliteNode) -> OutletId:
    """Wire the magnitude."""
    return node.wire(Reduce("l2", (node.fact(0).rank - 1,), False), [_complex_input(node)])
