"""Nodes that return one of their inputs."""

from pulse.declutter.conditions import uniform_value
from pulse.declutter.rewrite import Rewrite, TypedNode, bypass, result
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.pad import Pad
from pulse.ops.reduce import Reduce
from pulse.ops.shape import Expand, Reshape, Tile, Transpose
from pulse.ops.slice import Slice
from pulse.patch import Patch, replace_op
from pulse.typed import TypedGraph

NEUTRAL: dict[str, tuple[int, tuple[int, ...]]] = {
    "add": (0, (0, 1)),
    "sub": (0, (1,)),
    "mul": (1, (0, 1)),
    "div": (1, (1,)),
    "pow": (1, (1,)),
    "and": (1, (0, 1)),
    "or": (0, (0, 1)),
}
"""The neutral element of each function of two inputs, and the inputs that may hold it."""

IDEMPOTENT = frozenset({"abs", "ceil", "floor", "relu", "round", "sign"})
"""Functions with f(f(x)) = f(x)."""

SELF_OF_ONE = frozenset({"sum", "mean", "max", "min", "prod"})
"""Reductions that return a single value."""


def _same_shape(graph: TypedGraph, node: TypedNode) -> Patch | None:
    return bypass(graph, node, node.inputs[0]) if isinstance(node.op, Reshape | Expand) else None


def _still_transpose(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Transpose):
        return None
    shape = graph.fact(node.inputs[0]).shape
    moving = [axis for axis in node.op.perm if shape[axis] != 1]
    return bypass(graph, node, node.inputs[0]) if moving == sorted(moving) else None


def _same_cast(graph: TypedGraph, node: TypedNode) -> Patch | None:
    return bypass(graph, node, node.inputs[0]) if isinstance(node.op, Cast) else None


def _full_slice(graph: TypedGraph, node: TypedNode) -> Patch | None:
    op = node.op
    if not isinstance(op, Slice) or op.step != 1 or op.start != 0:
        return None
    return bypass(graph, node, node.inputs[0])


def _empty_pad(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Pad) or any(pair != (0, 0) for pair in node.op.pads):
        return None
    return bypass(graph, node, node.inputs[0])


def _concat_of_one(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Concat):
        return None
    axis = node.op.axis
    parts = [outlet for outlet in node.inputs if graph.fact(outlet).shape[axis] != 0] or node.inputs[:1]
    if len(parts) == 1:
        return bypass(graph, node, parts[0])
    if len(parts) == len(node.inputs):
        return None
    return replace_op(graph, result(node), node.name, node.op, parts)


def _tile_once(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Tile) or any(times != 1 for times in node.op.repeats):
        return None
    return bypass(graph, node, node.inputs[0])


def _neutral_operand(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Elementwise) or node.op.kind not in NEUTRAL:
        return None
    neutral, slots = NEUTRAL[node.op.kind]
    for slot in slots:
        value = uniform_value(graph, node.inputs[slot])
        if value is not None and value == neutral:
            return bypass(graph, node, node.inputs[1 - slot])
    return None


def _twice(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Elementwise) or node.op.kind not in IDEMPOTENT:
        return None
    return bypass(graph, node, node.inputs[0]) if graph.node(node.inputs[0]).op == node.op else None


def _one_operand(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Elementwise) or node.op.kind not in ("min", "max", "sum", "mean"):
        return None
    return bypass(graph, node, node.inputs[0]) if len(node.inputs) == 1 else None


def _reduce_of_ones(graph: TypedGraph, node: TypedNode) -> Patch | None:
    op = node.op
    if not isinstance(op, Reduce) or op.kind not in SELF_OF_ONE:
        return None
    shape = graph.fact(node.inputs[0]).shape
    return bypass(graph, node, node.inputs[0]) if all(shape[axis] == 1 for axis in op.axes) else None


def _decide_where(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Elementwise) or node.op.kind != "where":
        return None
    condition = uniform_value(graph, node.inputs[0])
    if condition is None:
        return None
    branch, shape = node.inputs[1 if condition else 2], node.outputs[0].fact.shape
    if graph.fact(branch).shape == shape:
        return bypass(graph, node, branch)
    return replace_op(graph, result(node), node.name, Expand(shape), [branch])


NOOPS = (
    Rewrite(
        "same_shape",
        "row-major order is kept, so the same shape is the same tensor",
        _same_shape,
        (Reshape, Expand),
    ),
    Rewrite(
        "still_transpose", "only axes of size one move, which hold no order", _still_transpose, (Transpose,)
    ),
    Rewrite("same_cast", "a tensor already is of its own type", _same_cast, (Cast,)),
    Rewrite("full_slice", "a slice from 0 with the input's length takes every frame", _full_slice, (Slice,)),
    Rewrite("empty_pad", "nothing is added", _empty_pad, (Pad,)),
    Rewrite(
        "concat_of_one",
        "a part without frames adds none, and one part alone is the whole",
        _concat_of_one,
        (Concat,),
    ),
    Rewrite("tile_once", "a tensor once is itself", _tile_once, (Tile,)),
    Rewrite(
        "neutral_operand",
        "x + 0, x - 0, x * 1, x / 1, x ** 1, x and true, x or false are x",
        _neutral_operand,
        (Elementwise,),
    ),
    Rewrite("twice", "f(f(x)) = f(x) for relu, abs and roundings", _twice, (Elementwise,)),
    Rewrite(
        "one_operand",
        "the smallest, largest, sum or mean of one tensor is that tensor",
        _one_operand,
        (Elementwise,),
    ),
    Rewrite(
        "reduce_of_ones",
        "the sum, mean, largest, smallest or product of one value is that value",
        _reduce_of_ones,
        (Reduce,),
    ),
    Rewrite(
        "decided_where",
        "a condition that is everywhere the same picks one branch whole",
        _decide_where,
        (Elementwise,),
    ),
)
