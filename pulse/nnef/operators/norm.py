"""Softmax and normalisations."""

import numpy as np

from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter


@writes("Softmax", "LogSoftmax")
def write_softmax(w: OperationWriter) -> Name:
    operator = "softmax" if w.kind == "Softmax" else "tract_core_log_softmax"
    return w.emit(operator, w.x(), axes=[w.axis(-1, w.rank())])


@writes("LayerNormalization")
def write_layer(w: OperationWriter) -> Name:
    rank = w.rank()
    axes = [*range(w.axis(-1, rank), rank)]
    x = w.x()
    centred = w.emit("sub", x, w.emit("mean_reduce", x, suffix="mean", axes=[*axes]), suffix="centred")
    square = w.emit("mul", centred, centred, suffix="square")
    variance = w.emit("mean_reduce", square, suffix="variance", axes=[*axes])
    sure = w.emit("add", variance, w.number(w.attribute("epsilon", 1e-5), w.dtype()), suffix="sure")
    unit = w.emit("div", centred, w.emit("sqrt", sure, suffix="deviation"), suffix="unit")
    scaled = w.emit("mul", unit, w.operand(1, rank), suffix="scaled" if w.has(2) else "")
    return w.emit("add", scaled, w.operand(2, rank)) if w.has(2) else scaled


@reads("softmax", takes="x axes=[1]")
def read_softmax(node: NodeReader) -> NnefWire:
    return _softmax(node, "Softmax")


@reads("tract_core_softmax", takes="x axes exp='libc'")
def read_tract_softmax(node: NodeReader) -> NnefWire:
    return _softmax(node, "Softmax")


@reads("tract_core_log_softmax", takes="x axes")
def read_log_softmax(node: NodeReader) -> NnefWire:
    return _softmax(node, "LogSoftmax")


def _softmax(node: NodeReader, kind: str) -> NnefWire:
    x = node.wire("x")
    axes = node.axes("axes", x.rank)
    if len(axes) != 1:
        raise node.error(f"over {len(axes)} axes it is not supported, over one it is; reshape them to one")
    return node.add(kind, [x], x.dtype, x.sizes, axis=axes[0])


@reads("tract_core_rms_norm", takes="input axis eps=1e-5")
def read_root_mean_square(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    axis = node.axis("axis", x.rank)
    sizes = [1 if at == axis else size for at, size in enumerate(x.sizes)]
    square = node.add("Mul", [x, x], x.dtype, x.sizes, "square")
    mean = node.add("ReduceMean", [square], x.dtype, sizes, "mean", axes=[axis], keepdims=1)
    epsilon = node.graph.constant(np.array(node.number("eps"), x.dtype), f"{node.targets[0]}.eps")
    root = node.add(
        "Sqrt", [node.add("Add", [mean, epsilon], x.dtype, sizes, "sure")], x.dtype, sizes, "root"
    )
    return node.add("Div", [x, root], x.dtype, x.sizes)
