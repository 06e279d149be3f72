"""Searches along an axis, and masks made from indices."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import I64, Array, is_symbolic, volume
from pulse.graph import OutletId
from pulse.infer.inference_node import same_type_and_rank, same_type_and_shape
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.gather import look_up
from pulse.onnx.operators.source import steps
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.reduce import ArgReduce
from pulse.ops.search import TopK
from pulse.ops.shape import AddAxis, Reshape
from pulse.typed import known_value
from pulse.wiring import wire


@onnx_op("TopK")
def top_k(node: NodeContext) -> list[OutletId]:
    """Wire the largest or smallest entries, always sorted; the count is an attribute before opset 10."""
    x = node.fact(0)
    axis = node.axis(node.integer("axis", -1), x.rank)
    count = node.integer("k") if node.opset < 10 else node.integer_at(1, "k")
    op = TopK(axis, count, node.flag("largest", True))
    return wire(node.graph, node.wire_name, op, [node.input(0)])


@onnx_op("OneHot")
def one_hot(node: NodeContext) -> OutletId:
    """Compare with 0, 1, 2 … along a new axis; a negative index counts from the end."""
    indices = node.fact(0)
    depth = node.integer_at(1, "depth")
    values = node.numbers(2, "values").ravel()
    node.require(len(values) == 2, f"its values must be two, off and on, got {len(values)}")
    axis = node.axis(node.integer("axis", -1), indices.rank + 1)
    positions = node.cast(node.input(0), I64, "indices")
    below = node.apply("less", positions, 0, suffix="below")
    from_end = node.apply("add", positions, depth, suffix="wrapped")
    positions = node.apply("where", below, from_end, positions, suffix="positions")
    column = node.wire(AddAxis(axis), [positions], "column")
    steps = np.arange(node.take_elements(depth, "depth")).reshape(-1, *(1,) * (indices.rank - axis))
    hit = node.apply("equal", column, node.constant(steps, "steps"), suffix="hit")
    off, on = (node.constant(value, name) for value, name in zip(values, ("off", "on")))
    return node.apply("where", hit, on, off)


@onnx_op("Trilu")
def trilu(node: NodeContext) -> OutletId:
    """Set zeros below the diagonal k (upper), or above it."""
    x = node.fact(0)
    node.require(x.rank >= 2, f"{x} is not a matrix")
    k = node.integer_at(1, "k") if node.has(1) else 0
    rows, columns = (steps(node, x.shape[axis], name) for axis, name in ((-2, "rows"), (-1, "columns")))
    diagonal = node.apply("add", rows, k, suffix="diagonal")
    column = node.wire(AddAxis(1), [diagonal], "column")
    comparison = "greater_equal" if node.flag("upper", True) else "less_equal"
    mask = node.apply(comparison, columns, column, suffix="mask")
    return node.apply("where", mask, node.input(0), 0)


@onnx_op("NonZero")
def non_zero(node: NodeContext) -> OutletId:
    """Return the indices of a constant's nonzero elements; for data, their number is unknown."""
    value = _require_constant(node, 0, "places")
    return node.constant(np.array(np.nonzero(np.atleast_1d(value)), np.int64))


@onnx_op("Compress")
def compress(node: NodeContext) -> OutletId:
    """Keep the entries of an axis, or of all elements, that a constant condition chooses."""
    entries = np.flatnonzero(_require_constant(node, 1, "chosen entries"))
    x, fact = node.input(0), node.fact(0)
    if "axis" in node.attributes:
        axis = node.axis(node.integer("axis"), fact.rank)
    else:
        axis, x = 0, node.wire(Reshape((volume(fact.shape),)), [x], "flat")
    return node.name_result(look_up(node, x, axis, node.constant(entries, "selected")))


@onnx_op("Unique")
def unique(node: NodeContext) -> list[OutletId]:
    """Return the distinct entries of a constant, their first indices, the inverse indices, and the counts."""
    value = _require_constant(node, 0, "distinct entries")
    axis = node.axis(node.integer("axis"), value.ndim) if "axis" in node.attributes else None
    y, first, inverse, counts = np.unique(value, True, True, True, axis=axis)
    if not node.flag("sorted", True):
        order = np.argsort(first)
        rank = np.argsort(order)
        y = np.take(y, order, axis or 0)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    results: list[Array] = [y, *(np.asarray(part.ravel(), np.int64) for part in (first, inverse, counts))]
    return [
        node.with_name(name or node.wire_name).constant(result) for name, result in zip(node.outputs, results)
    ]


def _require_constant(node: NodeContext, slot: int, subject: str) -> Array:
    value = known_value(node.graph, node.input(slot))
    if value is None or is_symbolic(value):
        raise node.error(
            f"the number of {subject} depends on data, so the shape of its output is not known; "
            "use a mask (Where) instead of a selection"
        )
    return value


@onnx_op("Hardmax")
def hardmax(node: NodeContext) -> OutletId:
    """Set 1 at the first largest entry of an axis, else 0; before opset 13 of all axes from ``axis`` on together."""
    x, shape = node.input(0), node.fact(0).shape
    axis = node.axis(node.integer("axis", -1 if node.opset >= 13 else 1), len(shape))
    flat = node.opset < 13 and axis < len(shape) - 1
    if flat:
        x = node.wire(Reshape((*shape[:axis], volume(shape[axis:]))), [x], "flat")
    fact = node.graph.fact(x)
    index = node.wire(ArgReduce("max", axis, True, False), [x], "index")
    row = steps(node, fact.shape[axis], "steps")
    if fact.rank - axis > 1:
        row = node.wire(Reshape((fact.shape[axis], *(TDim.of(1),) * (fact.rank - axis - 1))), [row], "along")
    hit = node.cast(node.apply("equal", row, index, suffix="hit"), fact.dtype, "one_hot")
    return node.name_result(node.wire(Reshape(shape), [hit]) if flat else hit)


rule("Hardmax")(same_type_and_shape)
rule("Trilu")(same_type_and_rank)


@writes(TopK)
def write_top_k(w: NodeWriter, op: TopK) -> list[str]:
    """Write the operator, sorted; of equal entries the first one comes first."""
    inputs = [w.inputs[0], w.integers([op.count], "k")]
    return w.emit_all("TopK", inputs, ("", ""), axis=op.axis, largest=int(op.largest), sorted=1)
