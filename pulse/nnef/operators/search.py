"""Largest entries."""

from pulse.facts import I64
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter


@writes("TopK")
def write_top(w: OperationWriter) -> list[Name]:
    if not w.attribute("sorted", 1):
        raise w.error("give the largest entries in order", "omit sorted=0")
    (count,) = w.integers(1, "k")
    axis = w.axis(-1, w.rank())
    largest = bool(w.attribute("largest", 1))
    suffixes = ("" if w.has_output(0) else "values", "" if w.has_output(1) else "indices")
    return w.emit_all("tract_core_topk", [w.x()], suffixes, k=count, axis=axis, largest=largest)


@reads("tract_core_topk", parameters="input k axis largest=True")
def read_top(node: NodeReader) -> tuple[NnefWire, NnefWire]:
    x, count = node.wire("input"), node.integer("k")
    axis = node.axis("axis", x.rank)
    sizes = [count if index == axis else size for index, size in enumerate(x.sizes)]
    values = node.add(
        "TopK",
        [x, node.integers_tensor([count], "k")],
        x.dtype,
        sizes,
        axis=axis,
        largest=int(node.boolean("largest")),
    )
    indices = node.graph.names.new(node.targets[1] if len(node.targets) > 1 else f"{values.name}.indices")
    node.graph.nodes[-1].output.append(indices)
    return values, NnefWire(indices, I64, tuple(sizes))
