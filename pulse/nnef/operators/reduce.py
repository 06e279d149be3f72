"""Reductions, and the places of an extreme."""

from collections.abc import Mapping

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter

SAME: Mapping[str, str] = {
    "ReduceSum": "sum_reduce",
    "ReduceMean": "mean_reduce",
    "ReduceMax": "max_reduce",
    "ReduceMin": "min_reduce",
    "ReduceProd": "tract_core_product_reduce",
}
SUMS = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")


def _axes(w: NodeWriter) -> list[int]:
    rank = len(w.sizes())
    found = w.integers(1, "axes") if w.has(1) else w.attribute("axes", None)
    if found is None or not len(found):
        return [] if w.attribute("noop_with_empty_axes", 0) else [*range(rank)]
    return sorted(int(axis) % rank for axis in found)


def _finish(w: NodeWriter, operator: str, x: Name, axes: list[int]) -> Name:
    """NNEF keeps the axes."""
    if w.attribute("keepdims", 1) or not axes:
        return w.emit(operator, x, axes=[*axes])
    return w.remove_axes(w.emit(operator, x, suffix="kept", axes=[*axes]), axes)


@writes(*SAME)
def write_reduce(w: NodeWriter) -> Name:
    axes = _axes(w)
    return _finish(w, SAME[w.kind], w.x(), axes) if axes else w.emit("copy", w.x())


@writes(*SUMS)
def write_sum(w: NodeWriter) -> Name:
    """Sums of a function of the entries, and a function of the sum."""
    x, axes = w.x(), _axes(w)
    if w.kind == "ReduceLogSumExp":
        return _log_sum_exp(w, x, axes)
    if w.kind == "ReduceL1":
        x = w.emit("abs", x, suffix="abs")
    elif w.kind in ("ReduceL2", "ReduceSumSquare"):
        x = w.emit("mul", x, x, suffix="square")
    after = {"ReduceL2": "sqrt", "ReduceLogSum": "log"}.get(w.kind)
    if not axes:
        return w.emit(after or "copy", x)
    if after is None:
        return _finish(w, "sum_reduce", x, axes)
    total = w.emit(after, w.emit("sum_reduce", x, suffix="sum", axes=[*axes]), suffix="" if w.attribute("keepdims", 1) else "kept")
    return total if w.attribute("keepdims", 1) else w.remove_axes(total, axes)


def _log_sum_exp(w: NodeWriter, x: Name, axes: list[int]) -> Name:
    """The largest entry is taken out first."""
    if not axes:
        return w.emit("copy", x)
    top = w.emit("max_reduce", x, suffix="top", axes=[*axes])
    power = w.emit("exp", w.emit("sub", x, top, suffix="rest"), suffix="exp")
    total = w.emit("log", w.emit("sum_reduce", power, suffix="sum", axes=[*axes]), suffix="log")
    keeps = w.attribute("keepdims", 1)
    result = w.emit("add", total, top, suffix="" if keeps else "kept")
    return result if keeps else w.remove_axes(result, axes)


@writes("ArgMax", "ArgMin")
def write_place(w: NodeWriter) -> Name:
    axis = w.axis(0, len(w.sizes()))
    kind = w.kind.lower()
    last = w.attribute("select_last_index", 0)
    return _finish(w, f"tract_core_{kind}_reduce_last" if last else f"{kind}_reduce", w.x(), [axis])
