"""Matrix products."""

from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Expression, Name
from pulse.nnef.write.node import OperationWriter
from pulse.support.printable import printable
from pulse.support.wording import count_of


@writes("MatMul")
def write_matmul(w: OperationWriter) -> Name:
    """Write both sides with equally many axes; a vector gets the axis that ONNX adds to it."""
    if w.dtype().kind != "f":
        raise w.error("only have matrix products of floats", "give the node floats")
    ranks = [w.rank(0), w.rank(1)]
    sides: list[Expression] = [w.x(0), w.x(1)]
    if ranks[0] == 1:
        sides[0], ranks[0] = w.add_axes(sides[0], [0], "row"), 2
    if ranks[1] == 1:
        sides[1], ranks[1] = w.add_axes(sides[1], [1], "column"), 2
    rank = max(ranks)
    for slot in (0, 1):
        if ranks[slot] < rank:
            sides[slot] = w.add_axes(sides[slot], range(rank - ranks[slot]), f"side{slot}")
    extra = [axis for slot, axis in ((0, rank - 2), (1, rank - 1)) if w.rank(slot) == 1]
    product = w.emit("matmul", *sides, suffix="wide" if extra else "")
    return w.remove_axes(product, extra) if extra else product


@reads("matmul", parameters="A B transposeA=False transposeB=False")
def read_matmul(node: NodeReader) -> NnefWire:
    """Sides with fewer axes are one matrix for all; vectors are not among NNEF's."""
    sides: list[NnefWire] = []
    for name in ("A", "B"):
        x = node.wire(name)
        if x.rank < 2:
            raise node.error(f"{name} has {count_of(x.rank, 'axis', 'axes')}; a matrix has at least two")
        if node.boolean(f"transpose{name}"):
            axes = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
            x = node.add(
                "Transpose", [x], x.dtype, [x.sizes[axis] for axis in axes], f"{name}.transposed", perm=axes
            )
        sides.append(x)
    a, b = sides
    if a.dtype != b.dtype:
        raise node.error(f"{a.dtype} times {b.dtype}; cast one of them")
    rank = max(a.rank, b.rank)
    batches = [(1,) * (rank - x.rank) + x.sizes[:-2] for x in sides]
    batch = [next((size for size in pair if size != 1), 1) for pair in zip(*batches)]
    return node.add("MatMul", [a, b], a.dtype, [*batch, a.sizes[-2], b.sizes[-1]])


@reads("tract_core_einsum", parameters="inputs expr acc='f32' output=''")
def read_einsum(node: NodeReader) -> NnefWire:
    values = node.arguments["inputs"]
    wires = [
        node.as_wire(value, f"input{index}")
        for index, value in enumerate(values if isinstance(values, list) else [values])
    ]
    expression = node.text("expr")
    operands, arrow, result = expression.partition("->")
    terms = operands.split(",")
    if (
        not arrow
        or len(terms) != len(wires)
        or any(len(term) != wire.rank or not term.isalpha() for term, wire in zip(terms, wires))
    ):
        raise node.error(f"the sum {printable(expression)} does not fit its {count_of(len(wires), 'input')}")
    sizes = {
        letter: size
        for term, wire in zip(terms, wires)
        for letter, size in zip(term, wire.sizes)
        if size != 1
    }
    new_axes = [index for index, letter in enumerate(result) if letter not in operands]
    letters = "".join(letter for letter in result if letter in operands)
    dims = [sizes.get(letter, 1) for letter in letters]
    total = node.add(
        "Einsum", wires, wires[0].dtype, dims, "sum" if new_axes else "", equation=f"{operands}->{letters}"
    )
    return node.add_axes(total, new_axes) if new_axes else total
