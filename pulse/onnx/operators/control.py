"""Branches: a graph that is chosen, wired into the graph around it."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import PulseError
from pulse.facts import Shape, dtype_name, is_symbolic
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.unrolling import inline
from pulse.onnx.registry import onnx_op
from pulse.onnx.subgraph import BodyGraph

SCALAR: Shape = ()


def body(node: NodeContext, name: str) -> BodyGraph:
    """Return a graph among the attributes. Raises LoadError: it is missing."""
    graph = node.attributes.get(name)
    if not isinstance(graph, BodyGraph):
        raise node.error(f"attribute {name} must be a graph; export the model again")
    return graph


@onnx_op("If")
def if_(node: NodeContext) -> Sequence[OutletId]:
    """Wire the branch that the condition selects; both and a choice between them if it is not constant."""
    condition = node.as_scalar(node.input(0), "condition")
    fact = node.graph.fact(condition)
    if fact.dtype != np.bool_:
        raise node.error(f"its condition must be bool, got {dtype_name(fact.dtype)}")
    if fact.value is not None and not is_symbolic(fact.value):
        branch = "then_branch" if bool(fact.value) else "else_branch"
        return [
            node.with_name(name).name_result(outlet)
            for name, outlet in zip(node.outputs, _branch(node, branch))
            if name
        ]
    return _choose(node, condition)


def _branch(node: NodeContext, name: str) -> list[OutletId]:
    graph = body(node, name)
    captured = {outer: node.captures[outer] for outer in graph.captures}
    facts = {outer: node.graph.fact(outlet) for outer, outlet in captured.items()}
    model = graph.to_typed(facts, node.scope, f"{node.wire_name}.{name}")
    outlets = inline(node.graph, model, captured)
    if len(outlets) != len(node.outputs):
        raise node.error(f"its {name} makes {len(outlets)} values for {len(node.outputs)} outputs")
    return outlets


def _choose(node: NodeContext, condition: OutletId) -> list[OutletId]:
    label = node.graph.label(node.input(0))
    branches: list[list[OutletId]] = []
    for name in ("then_branch", "else_branch"):
        try:
            branches.append(_branch(node, name))
        except PulseError as error:
            raise node.error(
                f"its condition {label} is only known while running, so both branches are needed, and the {name} "
                f"does not load: {error}; give inputs fixed sizes or values so that the condition is constant"
            ) from error
    outlets: list[OutletId] = []
    for name, yes, no in zip(node.outputs, *branches):
        left, right = node.graph.fact(yes), node.graph.fact(no)
        if not left.agrees(right):
            raise node.error(
                f"its condition {label} is only known while running, and the branches differ: {left} and {right}; "
                "give inputs fixed sizes or values so that the condition is constant"
            )
        part = node.with_name(name) if name else node
        outlets.append(part.apply("where", condition, yes, no))
    return outlets
