"""Nodes that return one of their inputs, and nodes that are known before running."""

from pulse.declutter.conditions import uniform_value
from pulse.declutter.rewrite import Rewrite, bypass, first_output
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.op import Op
from pulse.ops.shape import Expand
from pulse.ops.source import Const
from pulse.patch import Patch, replace_op
from pulse.typed import TypedGraph, TypedNode


def _bypass_identity(graph: TypedGraph, node: TypedNode, op: Op) -> Patch | None:
    slot = op.identity_input([graph.fact(outlet) for outlet in node.inputs])
    return None if slot is None else bypass(graph, node, node.inputs[slot])


def _drop_empty_parts(graph: TypedGraph, node: TypedNode, op: Concat) -> Patch | None:
    parts = [outlet for outlet in node.inputs if graph.fact(outlet).shape[op.axis] != 0]
    if len(parts) < 2 or len(parts) == len(node.inputs):
        return None
    return replace_op(graph, first_output(node), node.name, op, parts)


def _drop_neutral_operand(graph: TypedGraph, node: TypedNode, op: Elementwise) -> Patch | None:
    row = ELEMENTWISE[op.kind]
    if row.neutral is None:
        return None
    for slot in row.neutral_slots:
        value = uniform_value(graph, node.inputs[slot])
        if value is not None and value == row.neutral:
            return bypass(graph, node, node.inputs[1 - slot])
    return None


def _drop_repeated(graph: TypedGraph, node: TypedNode, op: Elementwise) -> Patch | None:
    if not ELEMENTWISE[op.kind].idempotent:
        return None
    return bypass(graph, node, node.inputs[0]) if graph.node(node.inputs[0]).op == op else None


def _decide_where(graph: TypedGraph, node: TypedNode, op: Elementwise) -> Patch | None:
    if op.kind != "where":
        return None
    condition = uniform_value(graph, node.inputs[0])
    if condition is None:
        return None
    branch, shape = node.inputs[1 if condition else 2], node.outputs[0].fact.shape
    if graph.fact(branch).shape == shape:
        return bypass(graph, node, branch)
    return replace_op(graph, first_output(node), node.name, Expand(shape), [branch])


NOOPS = (
    Rewrite(
        "identity",
        "the op equals an input of its own type and shape (``Op.identity_input``)",
        _bypass_identity,
    ),
    Rewrite("empty_parts", "a part without frames adds none", _drop_empty_parts, (Concat,)),
    Rewrite(
        "neutral_operand",
        "x + 0, x - 0, x * 1, x / 1, x ** 1, x and true, x or false are x",
        _drop_neutral_operand,
        (Elementwise,),
    ),
    Rewrite("twice", "f(f(x)) = f(x) for relu, abs and roundings", _drop_repeated, (Elementwise,)),
    Rewrite(
        "decided_where",
        "a condition that is everywhere the same picks one branch whole",
        _decide_where,
        (Elementwise,),
    ),
)


def _fold_constants(graph: TypedGraph, node: TypedNode, op: Op) -> Patch | None:
    if not node.inputs or any(fact.value is None for fact in graph.input_facts(node)):
        return None
    patch = Patch(graph)
    outlets = patch.wire(node.name, op, [patch.tap(outlet) for outlet in node.inputs])
    if not all(isinstance(patch.graph.node(outlet).op, Const) for outlet in outlets):
        return None
    for slot, outlet in enumerate(outlets):
        patch.shunt(OutletId(node.id, slot), outlet)
    return patch


CONSTANTS = (
    Rewrite(
        "fold", "an op is a function of its inputs: of known inputs it is a known tensor", _fold_constants
    ),
)
