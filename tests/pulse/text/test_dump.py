"""Dumps as text and as Graphviz."""

import re
from pathlib import Path

import numpy as np

from pulse.dim import ZERO, TDim
from pulse.graph import Graph, OutletId
from pulse.ops.conv import Conv
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.shape import Reshape
from pulse.text.dump import dot, text
from tests.pulse.declutter.decluttered_models import SmallModel
from tests.pulse.small_graphs import NamedOp, diamond

SNAPSHOT = Path(__file__).with_name("dump_conv.txt")


def layer() -> SmallModel:
    small = SmallModel("1,2,T,f32")
    padded = small.add("pad", Pad(((ZERO, ZERO), (ZERO, ZERO), (TDim.of(2), ZERO))), small.x)
    y = small.add("conv1", Conv((1,), (1,), ((ZERO, ZERO),)), padded, np.zeros((2, 2, 3), np.float32))
    act = small.add("act", Elementwise("leaky_relu", (0.1,)), y)
    small.graph.set_outputs([act, small.add("flat", Reshape((TDim.of(-1),)), y)], ["wave", "flat"])
    return small


def test_text_is_as_agreed() -> None:
    assert text(layer().graph, "layer") == SNAPSHOT.read_text()


def test_text_of_other_facts_and_ops_shows_every_outlet() -> None:
    lines = text(diamond()).splitlines()
    assert lines[0] == "graph: 4 nodes"
    assert lines[2].split() == ["1", "left", "f", "(x)", "->", "int;", "bool"]
    assert lines[-1] == "outputs: sum = end, flag = left:1"


def test_text_leaves_retired_nodes_out_and_keeps_unread_ones() -> None:
    graph = diamond()
    graph.set_outputs([OutletId(0)])
    assert len(text(graph).splitlines()) == 6
    graph.retire(3)
    assert text(graph).splitlines()[1:] == ["0  x  source    ()  -> int", "outputs: x"]
    assert text(Graph[str, NamedOp]()) == "graph: 0 nodes\noutputs:\n"


STRING = r'"(?:[^"\\\n]|\\.)*"'
NODE = rf"  \w+ \[label={STRING}(?:, shape=oval)?\];"
EDGE = rf"  \w+ -> \w+ \[label={STRING}\];"


def statements(dumped: str) -> list[str]:
    """The lines of a graph, each proven to be a statement of the language."""
    first, second, *lines, last = dumped.splitlines()
    assert re.fullmatch(rf"digraph {STRING} {{", first)
    assert (second, last) == ("  node [shape=box];", "}")
    for line in lines:
        assert re.fullmatch(f"{NODE}|{EDGE}", line), line
    return lines


def test_dot_has_a_statement_for_each_node_and_edge() -> None:
    lines = statements(dot(layer().graph))
    assert sum("->" in line for line in lines) == 5 + 2
    assert len(lines) == 6 + 5 + 2 * 2
    assert '  n0 -> n1 [label="1,2,T,f32"];' in lines


def test_dot_names_are_escaped() -> None:
    graph: Graph[str, NamedOp] = Graph()
    graph.inputs = graph.add('a "b"\\', NamedOp("x\\n"), (), ['fact "f"\n'])
    graph.set_outputs(graph.inputs)
    assert statements(dot(graph, 'title"\\')) == [
        r'  n0 [label="a \"b\"\\\nx\\n"];',
        r'  out0 [label="a \"b\"\\", shape=oval];',
        r'  n0 -> out0 [label="fact \"f\"\\n"];',
    ]
