"""Shapes: reshapes, transposes, axes of size 1, repetitions."""

from pulse.facts import I64
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter


@writes("Reshape", "Flatten")
def write_reshape(w: OperationWriter) -> Name:
    """Reshape; a size that depends on a symbol becomes -1, the remaining size, as in ONNX."""
    if not all(isinstance(size, int) for size in w.scope.fact(w.outputs[0])[1]):
        return w.emit("reshape", w.x(), shape=[*w.integers(1, "the shape")])
    return w.reshape(w.x(), w.output_shape())


@writes("Shape")
def write_shape(w: OperationWriter) -> Name:
    """Write a shape, for which tract has a separate type of sizes."""
    return w.cast(w.emit("tract_core_shape_of", w.x(), suffix="dims"), I64)


@writes("Transpose")
def write_transpose(w: OperationWriter) -> Name:
    rank = w.rank()
    axes = [int(axis) for axis in w.attribute("perm", range(rank)[::-1])]
    return w.emit("transpose", w.x(), axes=[*axes]) if rank else w.emit("copy", w.x())


@writes("Unsqueeze")
def write_unsqueeze(w: OperationWriter) -> Name:
    rank = w.output_rank()
    return w.add_axes(w.x(), sorted(axis % rank for axis in w.integers(1, "axes")))


@writes("Squeeze")
def write_squeeze(w: OperationWriter) -> Name:
    axes = w.integers(1, "axes") if w.has(1) else [axis for axis, size in enumerate(w.sizes()) if size == 1]
    return w.remove_axes(w.x(), sorted(axis % w.rank() for axis in axes))


@writes("Expand")
def write_expand(w: OperationWriter) -> Name:
    shape = w.output_shape()
    x = w.operand(0, len(shape))
    sizes = (1,) * (len(shape) - w.rank()) + w.sizes()
    if not shape or sizes == shape:
        return w.emit("copy", x if isinstance(x, Name) else w.x())
    return _tile(
        w,
        x
        if isinstance(x, Name)
        else w.scope.tensor(w.scope.constants[w.inputs[0]].reshape(sizes), w.inputs[0]),
        [1 if size == old else size for old, size in zip(sizes, shape)],
    )


writes("Tile")(lambda w: _tile(w, w.x(), w.integers(1, "repeats")))


def _tile(w: OperationWriter, x: Name, repeats: list[int]) -> Name:
    if 0 in repeats:
        raise w.error("have no tensors without elements", "give the model inputs that are not empty")
    return w.emit("tile", x, repeats=[*repeats])


@reads("reshape", parameters="input shape axis_start=0 axis_count=-1")
def read_reshape(node: NodeReader) -> NnefWire:
    """Reshape; a size of 0 keeps the axis, -1 is the remaining size."""
    x, shape = node.wire("input"), node.bounds("shape")
    start, count = node.integer("axis_start"), node.integer("axis_count")
    count = x.rank - start if count == -1 else count
    stop = start + count
    if (
        start < 0
        or count < 0
        or stop > x.rank
        or any(size == 0 and start + index >= x.rank for index, size in enumerate(shape))
    ):
        raise node.error(f"axes {start} to {stop} of a tensor with {x.rank} cannot be reshaped like this")
    if sum(size == -1 for size in shape) > 1 or any(isinstance(size, int) and size < -1 for size in shape):
        raise node.error(f"the shape {shape} has more than one open size, or a negative one")
    sizes = [x.sizes[start + index] if size == 0 else size for index, size in enumerate(shape)]
    fixed_sizes = [size if isinstance(size, int) and size > 0 else None for size in sizes]
    target = node.bounds_tensor([*[0] * start, *shape], "shape")
    if stop < x.rank:
        tail = node.add("Shape", [x], I64, [x.rank - stop], "tail", start=stop)
        target = node.add("Concat", [target, tail], I64, [None], "sizes", axis=0)
    return node.add("Reshape", [x, target], x.dtype, [*x.sizes[:start], *fixed_sizes, *x.sizes[stop:]])


@reads("transpose", parameters="input axes")
def read_transpose(node: NodeReader) -> NnefWire:
    """Transpose; omitted axes follow the others."""
    x = node.wire("input")
    axes = node.axes("axes", x.rank)
    axes += [axis for axis in range(x.rank) if axis not in axes]
    return node.add("Transpose", [x], x.dtype, [x.sizes[axis] for axis in axes], perm=axes)


@reads("squeeze", parameters="input axes")
def read_squeeze(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    return node.remove_axes(x, node.axes("axes", x.rank))


@reads("unsqueeze", parameters="input axes")
def read_unsqueeze(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    count = len(node.integers("axes"))
    return node.add_axes(x, node.axes("axes", x.rank + count))


@reads("tile", parameters="input repeats")
def read_tile(node: NodeReader) -> NnefWire:
    x, repeats = node.wire("input"), node.bounds("repeats")
    if len(repeats) != x.rank or any(isinstance(times, int) and times < 1 for times in repeats):
        raise node.error(f"repeats {repeats} must be a positive number for each of {x.rank} axes")
    sizes = [
        size * times if isinstance(times, int) and size is not None else None
        for size, times in zip(x.sizes, repeats)
    ]
    return node.add("Tile", [x, node.bounds_tensor(repeats, "repeats")], x.dtype, sizes)


@reads("tract_core_broadcast", parameters="input shape")
def read_broadcast(node: NodeReader) -> NnefWire:
    x, shape = node.wire("input"), node.bounds("shape")
    sizes = [size if isinstance(size, int) else None for size in shape]
    return node.add("Expand", [x, node.bounds_tensor(shape, "shape")], x.dtype, sizes)
