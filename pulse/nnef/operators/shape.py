"""Shapes: reshapes, transposes, axes of size 1, repetitions."""

from pulse.dim import TDim
from pulse.nnef.read.node import NodeReader, Wire
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("Reshape", "Flatten")
def write_reshape(w: NodeWriter) -> Name:
    return w.reshape(w.x(), w.made())


@writes("Transpose")
def write_transpose(w: NodeWriter) -> Name:
    rank = len(w.sizes())
    axes = [int(axis) for axis in w.attribute("perm", range(rank)[::-1])]
    return w.emit("transpose", w.x(), axes=[*axes]) if rank else w.emit("copy", w.x())


@writes("Unsqueeze")
def write_unsqueeze(w: NodeWriter) -> Name:
    rank = len(w.made())
    return w.add_axes(w.x(), sorted(axis % rank for axis in w.integers(1, "axes")))


@writes("Squeeze")
def write_squeeze(w: NodeWriter) -> Name:
    sizes = w.sizes()
    axes = w.integers(1, "axes") if w.has(1) else [axis for axis, size in enumerate(sizes) if size == 1]
    return w.remove_axes(w.x(), sorted(axis % len(sizes) for axis in axes))


@writes("Expand")
def write_expand(w: NodeWriter) -> Name:
    made = w.made()
    x = w.operand(0, len(made))
    sizes = (1,) * (len(made) - len(w.sizes())) + w.sizes()
    if not made or sizes == made:
        return w.emit("copy", x if isinstance(x, Name) else w.x())
    return _tile(
        w,
        x
        if isinstance(x, Name)
        else w.scope.tensor(w.scope.constants[w.inputs[0]].reshape(sizes), w.inputs[0]),
        [1 if size == old else size for old, size in zip(sizes, made)],
    )


@writes("Tile")
def write_tile(w: NodeWriter) -> Name:
    return _tile(w, w.x(), w.integers(1, "repeats"))


def _tile(w: NodeWriter, x: Name, repeats: list[int]) -> Name:
    if 0 in repeats:
        raise w.error("have no tensors without elements", "give the model inputs that are not empty")
    return w.emit("tile", x, repeats=[*repeats])


@reads("reshape", takes="input shape axis_start=0 axis_count=-1")
def read_reshape(node: NodeReader) -> Wire:
    """0 keeps the size of an axis, -1 is what is left; a size that depends on a symbol is what is left too."""
    x = node.wire("input")
    start, count = node.integer("axis_start"), node.integer("axis_count")
    count = x.rank - start if count == -1 else count
    shape = node.arguments["shape"]
    if not isinstance(shape, list) or start < 0 or count < 0 or start + count > x.rank:
        raise node.error(f"axes {start} to {start + count} of a tensor with {x.rank} cannot be reshaped so")
    numbers = [
        -1 if isinstance(each, TDim) and not each.is_const else node.plain(each, "shape") for each in shape
    ]
    if numbers.count(-1) > 1 or min(numbers, default=0) < -1:
        raise node.error(
            "more than one size of its shape is not known before running; split it into two reshapes"
        )
    inner = [
        x.sizes[start + at] if size == 0 and start + at < x.rank else size for at, size in enumerate(numbers)
    ]
    sizes: list[int | None] = [
        *x.sizes[:start],
        *(None if size == -1 else size for size in inner),
        *x.sizes[start + count :],
    ]
    tail = x.rank - start - count
    if tail and (None in x.sizes[start + count :] or -1 in numbers) and len(numbers) != count:
        raise node.error("the axes behind the reshaped ones have sizes that are not known; reshape all axes")
    behind = [0 if len(numbers) == count else size or 0 for size in x.sizes[start + count :]]
    asked = [*[0] * start, *(_kept(node, x, start, at, size) for at, size in enumerate(numbers)), *behind]
    return node.add("Reshape", [x, node.integers_tensor(asked, "shape")], x.dtype, sizes)


def _kept(node: NodeReader, x: Wire, start: int, at: int, size: int) -> int:
    if size == 0 and start + at >= x.rank:
        raise node.error(f"its shape keeps axis {start + at}, which the input does not have")
    return size


@reads("transpose", takes="input axes")
def read_transpose(node: NodeReader) -> Wire:
    """Axes that are left out stay behind the others."""
    x = node.wire("input")
    axes = node.axes("axes", x.rank)
    axes += [axis for axis in range(x.rank) if axis not in axes]
    return node.add("Transpose", [x], x.dtype, [x.sizes[axis] for axis in axes], perm=axes)


@reads("squeeze", takes="input axes")
def read_squeeze(node: NodeReader) -> Wire:
    x = node.wire("input")
    return node.remove_axes(x, node.axes("axes", x.rank))


@reads("unsqueeze", takes="input axes")
def read_unsqueeze(node: NodeReader) -> Wire:
    x = node.wire("input")
    count = len(node.integers("axes"))
    return node.add_axes(x, node.axes("axes", x.rank + count))


@reads("tile", takes="input repeats")
def read_tile(node: NodeReader) -> Wire:
    x, repeats = node.wire("input"), node.integers("repeats")
    if len(repeats) != x.rank or min(repeats, default=1) < 1:
        raise node.error(f"repeats {repeats} must be a positive number for each of {x.rank} axes")
    sizes = [None if size is None else size * times for size, times in zip(x.sizes, repeats)]
    return node.add("Tile", [x, node.integers_tensor(repeats, "repeats")], x.dtype, sizes)


@reads("tract_core_broadcast", takes="input shape")
def read_broadcast(node: NodeReader) -> Wire:
    x, shape = node.wire("input"), node.integers("shape")
    return node.add("Expand", [x, node.integers_tensor(shape, "shape")], x.dtype, shape)
