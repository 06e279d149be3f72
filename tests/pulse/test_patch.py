"""Patches keep facts, names and the graph sound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.dim import SymbolScope, TDim
from pulse.errors import FactError, PulseError
from pulse.facts import TypedFact
from pulse.graph import Graph, OutletId
from pulse.models import TypedModel
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.op import Op
from pulse.ops.shape import AddAxis
from pulse.ops.source import Const, Source
from pulse.patch import Patch, bypass_wire, replace_op
from pulse.typed import TypedGraph
from pulse.wiring import wire

RELU, NEG, ADD = Elementwise("relu"), Elementwise("neg"), Elementwise("add")


def chain() -> TypedModel:
    """A chain x -> a -> b -> c, with b and c the outputs."""
    scope = SymbolScope()
    graph: TypedGraph = Graph()
    fact = TypedFact.parse("1,2,T,f32", scope)
    outlet = graph.add("x", Source(fact), (), [fact])
    graph.inputs = outlet
    for name in "abc":
        outlet = wire(graph, name, NEG, outlet)
    graph.set_outputs([OutletId(2), OutletId(3)])
    return TypedModel(graph, scope)


def names(graph: TypedGraph) -> list[str]:
    return [graph.nodes[node].name for node in graph.order()]


def test_a_replacement_takes_the_name() -> None:
    graph = chain().graph
    added = replace_op(graph, OutletId(2), "b", RELU, graph.nodes[2].inputs).apply()
    graph.check()
    assert names(graph) == ["x", "a", "b", "c"]
    assert graph.nodes[added[0]].op == RELU
    assert graph.outputs == [OutletId(added[0]), OutletId(3)]
    assert not graph.nodes[2].outputs


def test_a_replacement_of_a_node_that_lives_on_gets_a_number() -> None:
    graph = chain().graph
    patch = Patch(graph)
    old = patch.tap(OutletId(1))
    patch.shunt(OutletId(1), patch.wire("a", ADD, [old, patch.tap(OutletId(0))])[0])
    patch.apply()
    graph.check()
    assert names(graph) == ["x", "a", "a.1", "b", "c"]


def test_a_node_can_be_put_after_a_wire() -> None:
    graph = chain().graph
    patch = Patch(graph)
    patch.shunt(OutletId(0), patch.wire("first", RELU, [patch.tap(OutletId(0))])[0])
    patch.apply()
    graph.check()
    assert names(graph) == ["x", "first", "a", "b", "c"]


def test_bypass_retires_inputs_of_the_bypassed_node() -> None:
    model = chain()
    graph = model.graph
    graph.set_outputs([OutletId(3)], ["y"])
    bypass_wire(graph, OutletId(2), OutletId(0)).apply()
    graph.check()
    assert [len(node.outputs) for node in graph.nodes] == [1, 0, 0, 1]
    assert names(graph) == ["x", "c"]
    x = np.float32([[[1, -2], [3, 4]]])
    np.testing.assert_array_equal(model.run(x)["y"], -x)


def test_known_wires_are_folded_in_a_patch() -> None:
    graph = chain().graph
    patch = Patch(graph)
    unit = patch.add_constant("one", np.ones((1, 1, 1), np.float32))
    two = patch.wire("two", ADD, [unit, unit])[0]
    assert isinstance(patch.graph.node(two).op, Const)
    patch.shunt(OutletId(2), patch.wire("b", ADD, [patch.tap(OutletId(1)), two])[0])
    patch.apply()
    graph.check()
    assert [fact.value is not None for fact in graph.input_facts(graph.node(graph.find("b")))] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    "op", [pytest.param(Cast(np.dtype(np.float64)), id="type"), pytest.param(AddAxis(0), id="rank")]
)
def test_a_differing_fact_is_refused(op: Op) -> None:
    graph = chain().graph
    patch = Patch(graph)
    new = patch.wire("new", op, [patch.tap(OutletId(0))])[0]
    with pytest.raises(PulseError, match=r"in place of b: 1,2,T,f32"):
        patch.shunt(OutletId(2), new)
    patch.apply()
    graph.check()
    assert names(graph) == ["x", "a", "b", "c"]


def test_shapes_that_are_proven_equal_are_taken() -> None:
    scope = SymbolScope()
    halves = TypedFact(np.dtype(np.float32), (scope.parse("2*(T/2)"),))
    scope.assume("T == 2*(T/2)")
    whole = TypedFact(np.dtype(np.float32), (scope.parse("T"),))
    assert halves.agrees(whole)
    assert not whole.agrees(TypedFact(np.dtype(np.float32), (scope.parse("T") + 1,)))
    assert not whole.agrees(TypedFact(np.dtype(np.float32), (scope.parse("T"), TDim.of(1))))


def test_an_op_that_does_not_fit_is_refused() -> None:
    graph = chain().graph
    patch = Patch(graph)
    with pytest.raises(FactError, match=r"new \(add\).*1,2,T,f32"):
        patch.wire("new", ADD, [patch.tap(OutletId(0)), patch.add_constant("c", np.ones(1, np.float64))])


def test_rebuilding_drops_dead_nodes_and_keeps_inputs() -> None:
    graph = chain().graph
    graph.set_outputs([OutletId(0)], ["y"])
    result = graph.compact_copy()
    assert [node.name for node in result.nodes] == ["x"]
    assert (result.inputs, result.outputs, result.output_names) == ([OutletId(0)], [OutletId(0)], ["y"])
    result.check()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_patches_keep_the_graph_sound(data: st.DataObject) -> None:
    graph = chain().graph
    for number in range(data.draw(st.integers(1, 8))):
        place = {node: index for index, node in enumerate(graph.order())}
        wires = st.sampled_from(sorted((OutletId(node) for node in place), key=lambda wire: place[wire.node]))
        old = data.draw(wires)
        patch = Patch(graph)
        inside = [patch.tap(wire) for wire in data.draw(st.lists(wires, min_size=1, max_size=3))
                  if place[wire.node] <= place[old.node]] or [patch.tap(old)]  # fmt: skip
        for _ in range(data.draw(st.integers(0, 3))):
            pair = [data.draw(st.sampled_from(inside)) for _ in range(2)]
            inside += patch.wire(data.draw(st.sampled_from("abc")), ADD, pair)
        patch.shunt(old, inside[-1])
        for node_id in patch.apply():
            assert graph.nodes[node_id].name in {node.name for node in graph.nodes}, number
        graph.check()
        assert graph.output_names == ["b", "c"]
        graph.compact_copy().check()
