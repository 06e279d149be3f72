"""Loops, branches and calls: subgraphs that a node runs."""

from collections.abc import Mapping, Sequence

import numpy as np

from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.infer.unrolling import MAX_ITERATIONS, MAX_NODES, choose_branch, inline, retire_from
from pulse.ops.control import Loop
from pulse.support.budget import current_spending
from pulse.support.wording import count_of
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.control_counted import scan
from pulse.tflite.registry import tflite_op
from pulse.typed import TypedGraph, TypedNetwork, add_source, known_value, sources
from pulse.wiring import wire


@tflite_op("WHILE", complex_numbers=True)
def while_(node: TfliteNode) -> Sequence[OutletId]:
    """Unroll the loop if its number of iterations is known; else wire a scan over frames, or one op."""
    unrolled = _unroll(node)
    if unrolled is not None:
        return unrolled
    outlets = scan(node, lambda option, facts: _to_typed(node, option, facts))
    return _wire_op(node) if outlets is None else outlets


def _unroll(node: TfliteNode) -> Sequence[OutletId] | None:
    """Return the states after the last iteration; None if the loop is too long, or if its end is not known."""
    states = [node.input(slot) for slot in range(len(node.inputs))]
    before, spending = len(node.graph.nodes), current_spending()
    max_nodes = spending.nodes + MAX_NODES
    for _ in range(MAX_ITERATIONS):
        condition = _known_condition(node, _run(node, "CondSubgraphIndex", states)[0])
        if condition is False:
            return states
        if condition is None or spending.nodes > max_nodes:
            break
        states = _run(node, "BodySubgraphIndex", states)
    retire_from(node.graph, before)
    return None


def _to_typed(node: TfliteNode, option: str, facts: Mapping[int, TypedFact]) -> TypedNetwork:
    """Return a subgraph of the node as a model."""
    return node.body(node.integer(option, 0), facts, f"{node.wire_name} ({node.op_type})")


def _known_condition(node: TfliteNode, outlet: OutletId) -> bool | None:
    """Return the value of a condition; None if it is only known while running."""
    value = known_value(node.graph, outlet)
    return None if value is None or value.size != 1 else bool(value.reshape(()))


def _run(
    node: TfliteNode, option: str, inputs: Sequence[OutletId], graph: TypedGraph | None = None
) -> list[OutletId]:
    """Return a subgraph wired in place of the node, or into another graph."""
    graph = node.graph if graph is None else graph
    facts = {index: graph.fact(outlet) for index, outlet in enumerate(inputs)}
    body = _to_typed(node, option, facts)
    feeds = {f"in{index}": outlet for index, outlet in enumerate(inputs)}
    results = inline(graph, body, feeds)
    if (len(results) < len(node.output_tensors) and option != "CondSubgraphIndex") or not results:
        raise node.error(
            f"its subgraph returns {count_of(len(results), 'tensor')} for {len(node.output_tensors)}"
        )
    return results


def _wire_op(node: TfliteNode) -> Sequence[OutletId]:
    """Return a loop whose number of iterations is known only at run time."""
    states = [node.input(slot) for slot in range(len(node.inputs))]
    graph = TypedGraph()
    for index, outlet in enumerate(states):
        add_source(graph, f"state{index}", node.graph.fact(outlet))
    graph.inputs = sources(graph)
    inner = TypedNetwork(graph, node.scope, node.wire_name, spending=current_spending())
    after = _run(node, "BodySubgraphIndex", graph.inputs, graph)
    condition = _run(node, "CondSubgraphIndex", after, graph)[0]
    graph.set_outputs([condition, *after], ["condition", *(f"next{index}" for index in range(len(after)))])
    first = _run(node, "CondSubgraphIndex", states)[0]
    limit = node.constant(np.array(np.iinfo(np.int64).max), "endless")
    names = ("iteration", "condition", *(f"state{index}" for index in range(len(states))))
    return wire(node.graph, node.wire_name, Loop(inner, names, (), None), [limit, first, *states])


@tflite_op("IF", complex_numbers=True)
def if_(node: TfliteNode) -> Sequence[OutletId]:
    """Wire the branch that a constant condition selects; else both branches, and a choice of each result."""
    inputs = [node.input(slot) for slot in range(1, len(node.inputs))]

    def branch(value: bool) -> list[OutletId]:
        return _run(node, "ThenSubgraphIndex" if value else "ElseSubgraphIndex", inputs)

    value = _known_condition(node, node.input(0))
    return choose_branch(node, node.input(0), branch, node.outputs) if value is None else branch(value)


@tflite_op("CALL", complex_numbers=True)
def call(node: TfliteNode) -> Sequence[OutletId]:
    """Wire a subgraph in place of the node."""
    return _run(node, "Subgraph", [node.input(slot) for slot in range(len(node.inputs))])
