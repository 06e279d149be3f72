"""Attention with a vector for each pair of frames by their distance: streamed where that is proved, else refused."""

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto

from pulse.errors import PulsifyError
from pulse.ops.attention import BandedAttentionStream
from tests.pulse.cases.attention import WIDTH, Graph, Mask, chunks, window
from tests.pulse.cases.build import Feeds, floats
from tests.pulse.pulsify.attention_checks import check, load_lean

LARGEST = 6
"""The largest distance that the table tells apart."""


def heads(g: Graph) -> str:
    return g.add("Transpose", g.add("Reshape", g.linear("x"), g.integers(0, 0, 2, 4)), perm=[0, 2, 1, 3])


def by_distance(g: Graph) -> str:
    return g.behind()


def shaw(mask: Mask, distance: Callable[[Graph], str] = by_distance) -> tuple[ModelProto, Feeds]:
    """Both products have a scale of their own, one of them before the sum and one behind a quotient."""
    g = Graph()
    q, k = heads(g), heads(g)
    scores = g.add("Mul", g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2])), g.constant(0.5))
    near = g.add("Clip", distance(g), g.number(-LARGEST), g.number(LARGEST))
    table = g.constant(floats("shaw", 2 * LARGEST + 1, 4))
    vectors = g.add("Gather", table, g.add("Add", near, g.number(LARGEST)))
    more = g.add("Div", g.add("Einsum", q, vectors, equation="bhnd,nrd->bhnr"), g.constant(1.25))
    weights = g.add("Softmax", mask(g, g.add("Add", more, scores)), axis=3)
    y = g.add("Transpose", g.add("MatMul", weights, heads(g)), perm=[0, 2, 1, 3])
    g.add("Reshape", y, g.integers(0, 0, WIDTH), name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return g.model(feeds), feeds


@pytest.mark.parametrize(
    ("mask", "delay"), [(window(5, 0), 0), (window(3, 2), 2), (window(9, 0), 0), (chunks(4, 1), 3)]
)
def test_vectors_by_distance(mask: Mask, delay: int) -> None:
    """The band is narrower than the table, or wider."""
    model = check(*shaw(mask), 1, pulses=(1, 7), lengths=(1, 2, 13, 31))
    assert model.outputs[0].delay == delay
    assert sum(isinstance(node.op, BandedAttentionStream) for node in model.graph.nodes) == 1


def test_all_frames_before_up_to_a_context() -> None:
    def causal(g: Graph, scores: str) -> str:
        seen = g.add("GreaterOrEqual", g.behind(), g.number(0))
        return g.add("Where", seen, scores, g.constant(-np.inf))

    check(*shaw(causal), 1, pulses=(1, 7), lengths=(1, 13, 20), max_context=20)


def test_vectors_of_both_directions_are_refused_as_such() -> None:
    with pytest.raises(PulsifyError, match="1 node refused") as error:
        load_lean(shaw(lambda g, scores: scores)[0]).pulsify()
    assert "attention in both directions" in str(error.value)


def far_apart(g: Graph) -> str:
    """One more from a position on that no trial reaches."""
    rows, _ = g.positions()
    late = g.add("Cast", g.add("Greater", rows, g.number(100_000)), to=7)
    return g.add("Add", g.behind(), late)


def twice_as_fast(g: Graph) -> str:
    rows, columns = g.positions()
    return g.add("Sub", g.add("Add", rows, rows), columns)


def by_the_length(g: Graph) -> str:
    return g.add("Add", g.behind(), g.add("Sub", g.frames(), g.number(9)))


@pytest.mark.parametrize("distance", [far_apart, twice_as_fast, by_the_length])
def test_vectors_by_something_else_are_refused(distance: Callable[[Graph], str]) -> None:
    """By the position, or by the length of the stream."""
    with pytest.raises(PulsifyError, match="not proved to depend on the distance of frames alone"):
        load_lean(shaw(window(5, 0), distance)[0]).pulsify()
