"""Nodes with the wrong number, rank or type of inputs are accepted or refused by name; nothing else comes out."""

import numpy as np
import pytest

import pulse
from pulse.tensorflow.operators import families as families
from pulse.tensorflow.registry import TRANSLATORS
from tests.pairs import pairs
from tests.pulse.tensorflow.graphs import GraphDefBuilder, Type

INPUTS = ("", "x", "x x", "x x x", "x x x x x x x", "i", "i x", "x i", "x c", "c x", "x c c", "c")
"""The inputs of a node: x has floats, i integers, c a constant."""
SHAPES = ((), (1, -1))


@pytest.mark.parametrize("op", sorted(TRANSLATORS))
def test_tensorflow_nodes_with_wrong_inputs_are_read_or_refused(op: str, default_suite: bool) -> None:
    refused = 0
    for inputs, shape in pairs(INPUTS, SHAPES, half=default_suite):
        graph = GraphDefBuilder()
        graph.place("x", *shape)
        graph.place("i", *shape, dtype=Type("i32"))
        graph.const("c", [1, 2], np.int32)
        graph.node("y", op, *inputs.split())
        try:
            pulse.load(graph.data).analyse()
        except pulse.PulseError:
            refused += 1
    assert refused
