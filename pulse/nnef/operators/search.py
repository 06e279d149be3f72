"""Largest entries."""

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("TopK")
def write_top(w: NodeWriter) -> list[Name]:
    if not w.attribute("sorted", 1):
        raise w.error("give the largest entries in order", "leave out sorted=0")
    (count,) = w.integers(1, "k")
    axis = w.axis(-1, len(w.sizes()))
    largest = bool(w.attribute("largest", 1))
    suffixes = ("" if w.makes(0) else "values", "" if w.makes(1) else "indices")
    return w.emit_all("tract_core_topk", [w.x()], suffixes, k=count, axis=axis, largest=largest)
