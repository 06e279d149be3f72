"""Products, normalisations and reductions."""

import math

import numpy as np

from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.dft import Dft
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.reduce import ArgReduce, Reduce, ReduceKind

REDUCTIONS: dict[ReduceKind, str] = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "l1": "ReduceL1",
    "l2": "ReduceL2",
    "sum_square": "ReduceSumSquare",
    "log_sum": "ReduceLogSum",
    "log_sum_exp": "ReduceLogSumExp",
}


@writes(MatMul)
def write_matmul(w: NodeWriter, op: MatMul) -> str:
    """The operator itself."""
    return w.emit("MatMul", w.inputs)


@writes(Dft)
def write_dft(w: NodeWriter, op: Dft) -> str:
    """A product with the transform's matrix: its answers to one point each."""
    sizes, made = w.sizes(), w.made()
    points = (sizes[op.axis], sizes[-1])
    single = np.eye(math.prod(points)).reshape(-1, *points)
    (answers,) = Dft(1, op.length, op.inverse, op.onesided).eval([single], {})
    matrix = answers.reshape(math.prod(points), -1).astype(w.dtype())
    last = len(sizes) - 1
    perm = [axis for axis in range(last) if axis != op.axis] + [op.axis, last]
    moved = w.transpose(w.inputs[0], perm, "frames")
    rows = w.reshape(moved, (*(sizes[axis] for axis in perm[:-2]), math.prod(points)), "rows")
    product = w.emit("MatMul", [rows, w.constant(matrix, "matrix")], "bins")
    back = sorted(range(last + 1), key=lambda place: perm[place])
    in_place = back == list(range(last + 1))
    whole = w.reshape(product, [made[axis] for axis in perm], "" if in_place else "whole")
    return whole if in_place else w.transpose(whole, back)


@writes(Softmax)
def write_softmax(w: NodeWriter, op: Softmax) -> str:
    """Of one axis."""
    return w.emit("LogSoftmax" if op.log else "Softmax", w.inputs, axis=op.axis)


@writes(LayerNorm)
def write_layer_norm(w: NodeWriter, op: LayerNorm) -> str:
    """The operator from opset 17 on; scale and bias have the normalised shape, as runtimes want."""
    x = w.inputs[0]
    inner = w.sizes()[op.axis :]
    extra = [_spread(w, slot, inner) for slot in range(1, len(w.inputs))]
    if w.opset >= 17:
        return w.emit("LayerNormalization", [x, *extra], axis=op.axis, epsilon=op.epsilon)
    axes = range(op.axis, len(w.sizes()))
    centred = w.emit("Sub", [x, w.reduce("ReduceMean", x, axes, "mean")], "centred")
    square = w.emit("Mul", [centred, centred], "square")
    variance = w.reduce("ReduceMean", square, axes, "variance")
    sure = w.emit("Add", [variance, w.number(op.epsilon, w.dtype(), "epsilon")], "sure")
    unit = w.emit("Div", [centred, w.emit("Sqrt", [sure], "deviation")], "unit")
    scaled = w.emit("Mul", [unit, extra[0]], "scaled" if extra[1:] else "")
    return w.emit("Add", [scaled, extra[1]]) if extra[1:] else scaled


def _spread(w: NodeWriter, slot: int, inner: tuple[int, ...]) -> str:
    """A scale or bias in the shape of the normalised axes."""
    sizes, value = w.sizes(slot), w.known(slot)
    if sizes == inner:
        return w.inputs[slot]
    narrow = sizes[max(0, len(sizes) - len(inner)) :]
    if math.prod(narrow) != math.prod(sizes):
        raise w.error(
            f"a scale or bias of shape {list(sizes)} reaches beyond the normalised axes {list(inner)}"
        )
    if value is not None:
        return w.constant(np.broadcast_to(value.reshape(narrow), inner), f"wide{slot}")
    flat = w.inputs[slot] if narrow == sizes else w.reshape(w.inputs[slot], narrow, f"flat{slot}")
    return w.emit("Expand", [flat, w.integers(inner, "inner")], f"wide{slot}")


@writes(Reduce)
def write_reduce(w: NodeWriter, op: Reduce) -> str:
    """The operator of that kind; a reduction of no axes is one over a new axis of size 1."""
    (x,) = w.inputs
    if op.axes:
        return w.reduce(REDUCTIONS[op.kind], x, op.axes, keepdims=op.keepdims)
    return w.reduce(REDUCTIONS[op.kind], w.add_axis(x, 0, "wide"), (0,), keepdims=False)


@writes(ArgReduce)
def write_arg_reduce(w: NodeWriter, op: ArgReduce) -> str:
    """Of equal entries the first, or the last."""
    return w.emit(
        "ArgMax" if op.kind == "max" else "ArgMin",
        w.inputs,
        axis=op.axis,
        keepdims=int(op.keepdims),
        select_last_index=int(op.select_last),
    )
