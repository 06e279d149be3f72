"""Softmax and normalisations."""

from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter


@writes("Softmax", "LogSoftmax")
def write_softmax(w: OperationWriter) -> Name:
    operator = "softmax" if w.op_type == "Softmax" else "tract_core_log_softmax"
    return w.emit(operator, w.x(), axes=[w.axis(-1, w.rank())])


@writes("LayerNormalization")
def write_layer(w: OperationWriter) -> Name:
    rank = w.rank()
    axes = [*range(w.axis(-1, rank), rank)]
    x = w.x()
    centred = w.emit("sub", x, w.emit("mean_reduce", x, suffix="mean", axes=[*axes]), suffix="centred")
    square = w.emit("mul", centred, centred, suffix="square")
    variance = w.emit("mean_reduce", square, suffix="variance", axes=[*axes])
    sure = w.apply("add", variance, w.attribute("epsilon", 1e-5), suffix="sure")
    unit = w.emit("div", centred, w.emit("sqrt", sure, suffix="deviation"), suffix="unit")
    scaled = w.emit("mul", unit, w.operand(1, rank), suffix="scaled" if w.has(2) else "")
    return w.emit("add", scaled, w.operand(2, rank)) if w.has(2) else scaled


@reads("softmax", parameters="x axes=[1]")
@reads("tract_core_softmax", parameters="x axes exp='libc'")
@reads("tract_core_log_softmax", parameters="x axes")
def read_softmax(node: NodeReader) -> NnefWire:
    x = node.wire("x")
    axes = node.axes("axes", x.rank)
    if len(axes) != 1:
        raise node.error(f"it is supported over one axis, not over {len(axes)}; reshape them to one")
    return node.apply("LogSoftmax" if "log" in node.operator else "Softmax", x, axis=axes[0])


@reads("tract_core_rms_norm", parameters="input axis eps=1e-5")
def read_root_mean_square(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    axis = node.axis("axis", x.rank)
    sizes = [1 if index == axis else size for index, size in enumerate(x.sizes)]
    square = node.apply("Mul", x, x, suffix="square")
    mean = node.add("ReduceMean", [square], x.dtype, sizes, "mean", axes=[axis], keepdims=1)
    sure = node.apply("Add", mean, node.number("eps"), suffix="sure")
    return node.apply("Div", x, node.apply("Sqrt", sure, suffix="root"))
