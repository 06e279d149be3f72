"""Graphs stay sound whatever is done to them."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pulse.errors import PulseError
from pulse.graph import Graph, InletId, OutletId
from tests.pulse.small_graphs import NamedOp, diamond


def test_add_keeps_successors() -> None:
    graph = diamond()
    graph.check()
    assert list(graph.outlet(OutletId(2)).successors) == [InletId(3, 1), InletId(3, 2)]
    assert graph.input_facts(graph.nodes[3]) == ["bool", "int", "int"]
    assert [graph.label(wire) for wire in graph.wires()] == ["x", "left:0", "left:1", "right", "end"]


def test_names_are_unique() -> None:
    graph = diamond()
    for _ in range(2):
        graph.add("x", NamedOp("f"), [], ["int"])
    assert [node.name for node in graph.nodes[4:]] == ["x.1", "x.2"]
    graph.rename(4, "end")
    graph.rename(5, "x.1")
    assert [node.name for node in graph.nodes[4:]] == ["end.1", "x.1"]
    graph.check()


def test_find_knows_outputs_before_wires() -> None:
    graph = diamond()
    assert graph.find("sum") == OutletId(3)
    assert graph.find("flag") == graph.find("left:1") == OutletId(1, 1)
    with pytest.raises(PulseError, match="unknown wire 'left'"):
        graph.find("left")


def test_order_has_the_nodes_that_targets_need() -> None:
    graph = diamond()
    assert graph.order() == [0, 1, 2, 3]
    assert graph.order([OutletId(1)]) == [0, 1]
    assert graph.order([]) == []


def test_order_after_ends_at_the_given_outlets() -> None:
    graph = diamond()
    assert graph.order_after({OutletId(2)}, [OutletId(3)]) == [0, 1, 3]
    assert graph.order_after({OutletId(1, 1), OutletId(2)}, [OutletId(3)]) == [3]
    assert graph.order_after({OutletId(1)}, [OutletId(1)]) == []
    assert graph.nodes[1].wires == [OutletId(1), OutletId(1, 1)]


def test_redirect_moves_readers_and_outputs() -> None:
    graph = diamond()
    graph.redirect(OutletId(3), OutletId(0))
    graph.redirect(OutletId(0), OutletId(0))
    assert graph.outputs == [OutletId(0), OutletId(1, 1)]
    graph.redirect(OutletId(2), OutletId(1), before=3)
    assert graph.nodes[3].inputs == [OutletId(1, 1), OutletId(2), OutletId(2)]
    graph.redirect(OutletId(2), OutletId(1))
    assert graph.nodes[3].inputs == [OutletId(1, 1), OutletId(1), OutletId(1)]
    graph.check()


def test_retire_removes_unread_nodes() -> None:
    graph = diamond()
    graph.retire(3)
    assert len(graph.nodes[3].outputs) == 1
    graph.set_outputs([OutletId(1, 1)])
    graph.retire(3)
    assert [len(node.outputs) for node in graph.nodes] == [1, 2, 0, 0]
    graph.set_outputs([])
    graph.retire(1)
    assert [len(node.outputs) for node in graph.nodes] == [1, 0, 0, 0]
    assert graph.unique("end") == "end"
    graph.check()


def test_a_cycle_is_found() -> None:
    graph = diamond()
    graph.redirect(OutletId(0), OutletId(2), before=2)
    with pytest.raises(PulseError, match="cycle"):
        graph.check()


def test_broken_successors_are_found() -> None:
    graph = diamond()
    graph.nodes[3].inputs[0] = OutletId(0)
    with pytest.raises(PulseError, match="successors are wrong"):
        graph.check()


def shape_of(graph: Graph[str, NamedOp]) -> list[object]:
    """Its nodes with their inputs, and its outputs with their names."""
    nodes = [(node.name, list(node.inputs), len(node.outputs)) for node in graph.nodes]
    return [nodes, list(graph.outputs), [graph.label(outlet) for outlet in graph.outputs]]


def test_refused_outlets_and_names_change_nothing() -> None:
    graph, untouched = diamond(), diamond()
    with pytest.raises(PulseError, match="no outlet"):
        graph.add("y", NamedOp("f"), [OutletId(0), OutletId(9)], ["int"])
    with pytest.raises(PulseError, match="distinct name"):
        graph.set_outputs([OutletId(0), OutletId(1)], ["a", "a"])
    graph.check()
    assert shape_of(graph) == shape_of(untouched)


class Edits(RuleBasedStateMachine):
    """Random adds, redirects to earlier wires, renames, retirements and outputs."""

    @initialize()
    def begin(self) -> None:
        self.graph: Graph[str, NamedOp] = Graph()
        self.graph.inputs = self.graph.add("x", NamedOp("source"), (), ["int"])

    def wire(self, data: st.DataObject) -> OutletId:
        return data.draw(st.sampled_from(list(self.graph.wires())))

    @rule(data=st.data(), inputs=st.integers(0, 3), outputs=st.integers(1, 3), name=st.sampled_from("xyz"))
    def add(self, data: st.DataObject, inputs: int, outputs: int, name: str) -> None:
        read = [self.wire(data) for _ in range(inputs)]
        outlets = self.graph.add(name, NamedOp("f"), read, ["int"] * outputs)
        assert len(outlets) == outputs

    @rule(data=st.data())
    def redirect(self, data: st.DataObject) -> None:
        position = {node: place for place, node in enumerate(self.ordered_ids())}
        old, new = sorted((self.wire(data), self.wire(data)), key=lambda wire: (position[wire.node], wire))[
            ::-1
        ]
        self.graph.redirect(old, new)
        if old != new:
            assert not self.graph.outlet(old).successors
            assert old not in self.graph.outputs

    @rule(data=st.data(), name=st.sampled_from("xyz"))
    def rename(self, data: st.DataObject, name: str) -> None:
        self.graph.rename(self.wire(data).node, name)

    @rule(data=st.data())
    def set_outputs(self, data: st.DataObject) -> None:
        wires = data.draw(st.lists(st.sampled_from(list(self.graph.wires())), max_size=3, unique=True))
        self.graph.set_outputs(wires)

    @precondition(lambda self: len(self.graph.nodes) > 1)
    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        self.graph.retire(self.wire(data).node)

    def ordered_ids(self) -> list[int]:
        return self.graph.order([OutletId(node.id) for node in self.graph.nodes if node.outputs])

    @invariant()
    def stays_sound(self) -> None:
        self.graph.check()
        earlier: set[int] = set()
        for node_id in self.ordered_ids():
            assert {outlet.node for outlet in self.graph.nodes[node_id].inputs} <= earlier
            earlier.add(node_id)
        assert set(self.graph.order()) <= earlier
        assert all(self.graph.find(self.graph.label(wire)).node in earlier for wire in self.graph.wires())


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
