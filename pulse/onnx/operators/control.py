"""Branches: a graph that is chosen, wired into the graph around it."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from pulse.facts import Shape, dtype_name, is_symbolic
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.unrolling import choose_branch, inline
from pulse.onnx.registry import onnx_op
from pulse.onnx.subgraph import BodyGraph
from pulse.support.wording import count_of

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
    node.require(fact.dtype == np.bool_, f"its condition must be bool, got {dtype_name(fact.dtype)}")
    if fact.value is not None and not is_symbolic(fact.value):
        results = zip(node.outputs, _branch(node, bool(fact.value)))
        return [node.with_name(name).name_result(outlet) for name, outlet in results if name]
    return choose_branch(node, condition, partial(_branch, node), node.outputs)


def _branch(node: NodeContext, value: bool) -> list[OutletId]:
    name = "then_branch" if value else "else_branch"
    graph = body(node, name)
    captured = {outer: node.captures[outer] for outer in graph.captures}
    facts = {outer: node.graph.fact(outlet) for outer, outlet in captured.items()}
    model = graph.to_typed(facts, node.scope, f"{node.wire_name}.{name}")
    outlets = inline(node.graph, model, captured)
    if len(outlets) != len(node.outputs):
        raise node.error(
            f"its {name} makes {count_of(len(outlets), 'value')} for {count_of(len(node.outputs), 'output')}"
        )
    return outlets
