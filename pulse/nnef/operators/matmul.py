"""Matrix products."""

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Expression, Name
from pulse.nnef.write.node import NodeWriter


@writes("MatMul")
def write_matmul(w: NodeWriter) -> Name:
    """Both sides with equally many axes; a vector gets the axis that ONNX adds to it."""
    if w.dtype().kind != "f":
        raise w.error("have matrix products of floats only", "give the node floats")
    ranks = [len(w.sizes(0)), len(w.sizes(1))]
    sides: list[Expression] = [w.x(0), w.x(1)]
    if ranks[0] == 1:
        sides[0], ranks[0] = w.add_axes(sides[0], [0], "row"), 2
    if ranks[1] == 1:
        sides[1], ranks[1] = w.add_axes(sides[1], [1], "column"), 2
    rank = max(ranks)
    for slot in (0, 1):
        if ranks[slot] < rank:
            sides[slot] = w.add_axes(sides[slot], range(rank - ranks[slot]), f"side{slot}")
    extra = [axis for slot, axis in ((0, rank - 2), (1, rank - 1)) if len(w.sizes(slot)) == 1]
    product = w.emit("matmul", *sides, suffix="wide" if extra else "")
    return w.remove_axes(product, extra) if extra else product
