"""Spectra: between the operators that support complex numbers, these are a last axis of real and imaginary parts."""

from pulse.dim import ZERO, TDim
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.spectral import dft
from pulse.ops.conv import NO_PAD
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.ops.slice import Slice
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op

OPSET = 17
"""The version of the operator that has the axis among its attributes."""


@tflite_op("RFFT2D")
def rfft2d(node: TfliteNode) -> OutletId:
    """The transform of the last two axes, cut or padded with zeros to the given lengths."""
    rows, columns = node.integers(1, "lengths") if node.fact(1).shape == (TDim.of(2),) else (0, 0)
    rank = node.fact(0).rank
    if rows < 1 or columns < 1 or rank < 2:
        raise node.error(f"lengths {rows}, {columns} of a tensor of {rank} axes")
    x = _fit_length(node, _fit_length(node, node.values(0), rank - 2, rows), rank - 1, columns)
    pairs = node.wire(AddAxis(rank), [x], "pairs")
    y = _transform(node, pairs, rank - 1, True, "columns")
    return node.name_result(y if rows == 1 else _transform(node, y, rank - 2, False, "rows"))


def _transform(node: TfliteNode, x: OutletId, axis: int, onesided: bool, name: str) -> OutletId:
    """Return the transform of one axis of real and imaginary parts."""
    title, attributes = f"{node.wire_name}.{name}", {"axis": axis, "onesided": int(onesided)}
    return dft(
        NodeContext(
            op_type="DFT",
            opset=OPSET,
            wire_name=title,
            attributes=attributes,
            inputs=(x,),
            outputs=(title,),
            graph=node.graph,
            scope=node.scope,
        )
    )


def _fit_length(node: TfliteNode, x: OutletId, axis: int, length: int) -> OutletId:
    fact = node.graph.fact(x)
    missing = length - fact.shape[axis]
    if not missing.is_const:
        raise node.error(f"axis {axis} has {fact.shape[axis]} entries, which must be a number")
    if int(missing) < 0:
        return node.wire(Slice(axis, TDim.of(0), TDim.of(length)), [x], f"cut{axis}")
    if int(missing) == 0:
        return x
    pads = tuple((ZERO, missing) if index == axis else NO_PAD for index in range(fact.rank))
    return node.wire(Pad(pads), [x], f"filled{axis}")


def _part(node: TfliteNode, index: int) -> OutletId:
    """Return the real or the imaginary part."""
    if node.input_tensor(0).type_name != "COMPLEX64":
        raise node.error(f"its input is {node.input_tensor(0).type_name}, and not complex")
    last = node.fact(0).rank - 1
    name = ("re", "im")[index]
    x = node.wire(Slice(last, TDim.of(index), TDim.of(index + 1)), [node.input(0)], f"{name}.pair")
    return node.wire(RemoveAxis(last), [x], name)


@tflite_op("REAL", "IMAG")
def part(node: TfliteNode) -> OutletId:
    """One part of a complex number."""
    return node.name_result(_part(node, int(node.op_type == "IMAG")))


@tflite_op("COMPLEX_ABS")
def complex_abs(node: TfliteNode) -> OutletId:
    """The length of a complex number."""
    squares = [
        node.apply("mul", x, x, suffix=f"square{index}") for index in (0, 1) for x in [_part(node, index)]
    ]
    return node.apply("sqrt", node.apply("add", *squares, suffix="power"))
