"""Softmax and normalisations."""

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("Softmax", "LogSoftmax")
def write_softmax(w: NodeWriter) -> Name:
    operator = "softmax" if w.kind == "Softmax" else "tract_core_log_softmax"
    return w.emit(operator, w.x(), axes=[w.axis(-1, len(w.sizes()))])


@writes("LayerNormalization")
def write_layer(w: NodeWriter) -> Name:
    rank = len(w.sizes())
    axes = [*range(w.axis(-1, rank), rank)]
    x = w.x()
    centred = w.emit("sub", x, w.emit("mean_reduce", x, suffix="mean", axes=[*axes]), suffix="centred")
    square = w.emit("mul", centred, centred, suffix="square")
    variance = w.emit("mean_reduce", square, suffix="variance", axes=[*axes])
    sure = w.emit("add", variance, w.number(w.attribute("epsilon", 1e-5), w.dtype()), suffix="sure")
    unit = w.emit("div", centred, w.emit("sqrt", sure, suffix="deviation"), suffix="unit")
    scaled = w.emit("mul", unit, w.operand(1, rank), suffix="scaled" if w.has(2) else "")
    return w.emit("add", scaled, w.operand(2, rank)) if w.has(2) else scaled
