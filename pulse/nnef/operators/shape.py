"""Shapes: reshapes, transposes, axes of size 1, repetitions."""

from pulse.nnef.registry import writes
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
    return _tile(w, x if isinstance(x, Name) else w.scope.tensor(w.scope.constants[w.inputs[0]].reshape(sizes), w.inputs[0]),
                 [1 if size == old else size for old, size in zip(sizes, made)])


@writes("Tile")
def write_tile(w: NodeWriter) -> Name:
    return _tile(w, w.x(), w.integers(1, "repeats"))


def _tile(w: NodeWriter, x: Name, repeats: list[int]) -> Name:
    if 0 in repeats:
        raise w.error("have no tensors without elements", "give the model inputs that are not empty")
    return w.emit("tile", x, repeats=[*repeats])
