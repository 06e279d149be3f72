"""Entries written by index."""

from typing import Any

from pulse.nnef.operators.gather import from_the_start, read_index
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter
from pulse.support.printable import printable


@writes("ScatterElements")
def write_elements(w: OperationWriter) -> Name:
    axis = w.axis(0, w.rank())
    index = from_the_start(w, [axis])
    reduction = str(w.attribute("reduction", "none"))
    return w.emit("tract_core_scatter_elements", w.x(), index, w.x(2), axis=axis, reduction=reduction)


@writes("ScatterND")
def write_nd(w: OperationWriter) -> Name:
    index = from_the_start(w, range(w.sizes(1)[-1]))
    return w.emit(
        "tract_core_scatter_nd", w.x(), index, w.x(2), reduction=str(w.attribute("reduction", "none"))
    )


def _reduction(node: NodeReader) -> dict[str, Any]:
    """Return ONNX's attribute; tract's names are the same."""
    reduction = node.text("reduction")
    if reduction not in ("none", "add", "mul", "min", "max"):
        raise node.error(f"the reduction {printable(reduction)} is not supported")
    return {} if reduction == "none" else {"reduction": reduction}


@reads("tract_core_scatter_elements", parameters="input indices updates axis reduction='none'")
def read_elements(node: NodeReader) -> NnefWire:
    x, index, updates = node.wire("input"), read_index(node), node.wire("updates")
    return node.apply(
        "ScatterElements", x, index, updates, axis=node.axis("axis", x.rank), **_reduction(node)
    )


@reads("tract_core_scatter_nd", parameters="input indices updates reduction='none'")
def read_nd(node: NodeReader) -> NnefWire:
    x, index, updates = node.wire("input"), read_index(node), node.wire("updates")
    return node.apply("ScatterND", x, index, updates, **_reduction(node))
