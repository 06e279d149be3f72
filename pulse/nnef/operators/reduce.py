"""Reductions, argmin and argmax."""

from collections.abc import Mapping

import numpy as np

from pulse.facts import I64
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Call, Expression, Name
from pulse.nnef.write.node import OperationWriter

NNEF_NAMES: Mapping[str, str] = {
    "ReduceSum": "sum_reduce",
    "ReduceMean": "mean_reduce",
    "ReduceMax": "max_reduce",
    "ReduceMin": "min_reduce",
    "ReduceProd": "tract_core_product_reduce",
}
COMPOSED_SUMS = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")


def _axes(w: OperationWriter) -> list[int]:
    rank = w.rank()
    axes = w.integers(1, "axes") if w.has(1) else w.attribute("axes", None)
    if axes is None or not len(axes):
        return [] if w.attribute("noop_with_empty_axes", 0) else [*range(rank)]
    return sorted(int(axis) % rank for axis in axes)


def _finish(
    w: OperationWriter, axes: list[int], operator: str, /, *inputs: Name, **attributes: Expression
) -> Name:
    """Emit the last operation of a reduction; NNEF keeps axes, so they are removed unless the node keeps them."""
    call = Call(operator, inputs, tuple(attributes.items()))
    return w.assign(call) if w.attribute("keepdims", 1) else w.remove_axes(w.assign(call, "with_axes"), axes)


@writes(*NNEF_NAMES)
def write_reduce(w: OperationWriter) -> Name:
    axes = _axes(w)
    if not axes:
        return w.emit("copy", w.x())
    return _finish(w, axes, NNEF_NAMES[w.op_type], w.x(), axes=[*axes])


@writes(*COMPOSED_SUMS)
def write_sum(w: OperationWriter) -> Name:
    """Write sums of a function of the entries, and a function of the sum."""
    x, axes = w.x(), _axes(w)
    if w.op_type == "ReduceLogSumExp":
        return _log_sum_exp(w, x, axes)
    if w.op_type == "ReduceL1":
        x = w.emit("abs", x, suffix="abs")
    elif w.op_type in ("ReduceL2", "ReduceSumSquare"):
        x = w.emit("mul", x, x, suffix="square")
    after = {"ReduceL2": "sqrt", "ReduceLogSum": "log"}.get(w.op_type)
    if not axes:
        return w.emit(after or "copy", x)
    if after is None:
        return _finish(w, axes, "sum_reduce", x, axes=[*axes])
    return _finish(w, axes, after, w.emit("sum_reduce", x, suffix="sum", axes=[*axes]))


def _log_sum_exp(w: OperationWriter, x: Name, axes: list[int]) -> Name:
    """Subtract the largest entry first, if it is finite, so that no power overflows."""
    if not axes:
        return w.emit("copy", x)
    top = w.emit("max_reduce", x, suffix="top", axes=[*axes])
    is_finite = w.apply(
        "le", w.emit("abs", top, suffix="abs"), float(np.finfo(w.dtype()).max), suffix="is_finite"
    )
    shift = w.apply("select", is_finite, top, 0, suffix="shift")
    power = w.emit("exp", w.emit("sub", x, shift, suffix="rest"), suffix="exp")
    total = w.emit("log", w.emit("sum_reduce", power, suffix="sum", axes=[*axes]), suffix="log")
    return _finish(w, axes, "add", total, shift)


@writes("ArgMax", "ArgMin")
def write_arg_extreme(w: OperationWriter) -> Name:
    axis = w.axis(0, w.rank())
    kind = w.op_type.lower()
    last = w.attribute("select_last_index", 0)
    return _finish(
        w, [axis], f"tract_core_{kind}_reduce_last" if last else f"{kind}_reduce", w.x(), axes=[axis]
    )


ONNX_NAMES: Mapping[str, str] = {name: kind for kind, name in NNEF_NAMES.items()}
BOOL_REDUCTIONS: Mapping[str, str] = {"any_reduce": "ReduceMax", "all_reduce": "ReduceMin"}


def _reduce(node: NodeReader, op_type: str, x: NnefWire, suffix: str = "") -> NnefWire:
    axes = node.axes("axes", x.rank)
    if not axes:
        return node.add("Identity", [x], x.dtype, x.sizes, suffix)
    sizes = [1 if axis in axes else size for axis, size in enumerate(x.sizes)]
    if op_type == "ReduceSum":
        return node.add(op_type, [x, node.integers_tensor(axes, "axes")], x.dtype, sizes, suffix, keepdims=1)
    return node.add(op_type, [x], x.dtype, sizes, suffix, axes=axes, keepdims=1)


@reads("sum_reduce", parameters="input axes normalize=False")
def read_sum(node: NodeReader) -> NnefWire:
    return _reduce(node, "ReduceMean" if node.boolean("normalize") else "ReduceSum", node.wire("input"))


@reads("mean_reduce", "max_reduce", "min_reduce", "tract_core_product_reduce", parameters="input axes")
def read_reduce(node: NodeReader) -> NnefWire:
    return _reduce(node, ONNX_NAMES[node.operator], node.wire("input"))


@reads(*BOOL_REDUCTIONS, parameters="input axes")
def read_boolean_reduction(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    number = _reduce(node, BOOL_REDUCTIONS[node.operator], node.cast(x, I64, "numbers"), "extreme")
    return node.cast(number, x.dtype)


@reads(
    "argmax_reduce",
    "argmin_reduce",
    "tract_core_argmax_reduce_last",
    "tract_core_argmin_reduce_last",
    parameters="input axes",
)
def read_arg_extreme(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    axes = node.axes("axes", x.rank)
    if len(axes) != 1:
        raise node.error(f"argmin and argmax over {len(axes)} axes are not supported; reduce one axis")
    op_type = "ArgMax" if "argmax" in node.operator else "ArgMin"
    sizes = [1 if axis in axes else size for axis, size in enumerate(x.sizes)]
    last = int(node.operator.endswith("_last"))
    return node.add(op_type, [x], I64, sizes, axis=axes[0], keepdims=1, select_last_index=last)
