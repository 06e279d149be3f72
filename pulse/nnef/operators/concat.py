"""Joins."""

from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter


@writes("Concat")
def write_concat(w: OperationWriter) -> Name:
    parts = [slot for slot in range(len(w.inputs)) if 0 not in w.scope.fact(w.inputs[slot])[1]]
    if len(parts) == 1:
        return w.emit("copy", w.x(parts[0]))
    return w.emit("concat", [w.x(slot) for slot in parts], axis=w.axis(0, w.output_rank()))


def _wires(node: NodeReader) -> list[NnefWire]:
    values = node.arguments["values"]
    if not isinstance(values, list) or not values:
        raise node.error("values must be a list of tensors")
    wires = [node.as_wire(value, f"values{index}") for index, value in enumerate(values)]
    if len({(wire.rank, wire.dtype) for wire in wires}) != 1:
        raise node.error("values have different types or numbers of axes")
    return wires


def _join(node: NodeReader, wires: list[NnefWire], axis: int) -> NnefWire:
    if None not in [wire.sizes[axis] for wire in wires]:
        wires = node.graph.crop_ends(wires)
    lengths = [wire.sizes[axis] for wire in wires]
    length = None if None in lengths else sum(size for size in lengths if size is not None)
    sizes = [length if index == axis else size for index, size in enumerate(wires[0].sizes)]
    return node.add("Concat", wires, wires[0].dtype, sizes, axis=axis)


@reads("concat", parameters="values axis")
def read_concat(node: NodeReader) -> NnefWire:
    wires = _wires(node)
    return _join(node, wires, node.axis("axis", wires[0].rank))


@reads("stack", parameters="values axis")
def read_stack(node: NodeReader) -> NnefWire:
    wires = _wires(node)
    axis = node.axis("axis", wires[0].rank + 1)
    return _join(
        node, [node.add_axes(wire, [axis], f"part{index}") for index, wire in enumerate(wires)], axis
    )
