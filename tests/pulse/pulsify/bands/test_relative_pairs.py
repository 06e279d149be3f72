"""Attention with a vector for each pair of frames by their distance: streamed where that is proved, else refused."""

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto

from pulse.errors import PulsifyError
from pulse.ops.attention import BandedAttentionStream
from tests.pulse.cases.attention import WIDTH, AttentionBuilder, Mask, chunks, window
from tests.pulse.cases.build import Feeds, floats
from tests.pulse.pulsify.bands.attention_checks import assert_streams_agree, load_decluttered

MAX_DISTANCE = 6
"""The largest distance that the table tells apart."""


def heads(graph: AttentionBuilder) -> str:
    return graph.add(
        "Transpose", graph.add("Reshape", graph.linear("x"), graph.integers(0, 0, 2, 4)), perm=[0, 2, 1, 3]
    )


def by_distance(graph: AttentionBuilder) -> str:
    return graph.distances()


def shaw(mask: Mask, distance: Callable[[AttentionBuilder], str] = by_distance) -> tuple[ModelProto, Feeds]:
    """Both products have their own scale, one of them before the sum and one after a quotient."""
    graph = AttentionBuilder()
    q, k = heads(graph), heads(graph)
    scores = graph.add(
        "Mul", graph.add("MatMul", q, graph.add("Transpose", k, perm=[0, 1, 3, 2])), graph.constant(0.5)
    )
    near = graph.add("Clip", distance(graph), graph.number(-MAX_DISTANCE), graph.number(MAX_DISTANCE))
    table = graph.constant(floats("shaw", 2 * MAX_DISTANCE + 1, 4))
    vectors = graph.add("Gather", table, graph.add("Add", near, graph.number(MAX_DISTANCE)))
    more = graph.add("Div", graph.add("Einsum", q, vectors, equation="bhnd,nrd->bhnr"), graph.constant(1.25))
    weights = graph.add("Softmax", mask(graph, graph.add("Add", more, scores)), axis=3)
    y = graph.add("Transpose", graph.add("MatMul", weights, heads(graph)), perm=[0, 2, 1, 3])
    graph.add("Reshape", y, graph.integers(0, 0, WIDTH), name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return graph.model(feeds), feeds


@pytest.mark.parametrize(
    ("mask", "delay"),
    [
        pytest.param(window(5, 0), 0, id="causal"),
        pytest.param(window(3, 2), 2, id="window"),
        pytest.param(window(9, 0), 0, id="long causal"),
        pytest.param(chunks(4, 1), 3, id="chunks"),
    ],
)
def test_vectors_by_distance_stream(mask: Mask, delay: int) -> None:
    """The band is narrower than the table, or wider."""
    model = assert_streams_agree(*shaw(mask), 1, pulses=(1, 7), lengths=(1, 2, 13, 31))
    assert model.outputs[0].delay == delay
    assert sum(isinstance(node.op, BandedAttentionStream) for node in model.graph.nodes) == 1


def test_causal_attention_with_vectors_streams_up_to_a_context() -> None:
    def causal(graph: AttentionBuilder, scores: str) -> str:
        visible = graph.add("GreaterOrEqual", graph.distances(), graph.number(0))
        return graph.add("Where", visible, scores, graph.constant(-np.inf))

    assert_streams_agree(*shaw(causal), 1, pulses=(1, 7), lengths=(1, 13, 20), max_context=20)


def test_vectors_of_attention_in_both_directions_are_refused() -> None:
    with pytest.raises(PulsifyError, match="1 node refused") as error:
        load_decluttered(shaw(lambda g, scores: scores)[0]).pulsify()
    assert "attention in both directions" in str(error.value)


def far_apart(graph: AttentionBuilder) -> str:
    """The distance, plus 1 from a position on that no trial reaches."""
    rows, _ = graph.positions()
    late = graph.add("Cast", graph.add("Greater", rows, graph.number(100_000)), to=7)
    return graph.add("Add", graph.distances(), late)


def twice_as_fast(graph: AttentionBuilder) -> str:
    rows, columns = graph.positions()
    return graph.add("Sub", graph.add("Add", rows, rows), columns)


def by_the_length(graph: AttentionBuilder) -> str:
    return graph.add("Add", graph.distances(), graph.add("Sub", graph.frames(), graph.number(9)))


@pytest.mark.parametrize("distance", [far_apart, twice_as_fast, by_the_length])
def test_vectors_by_position_or_length_are_refused(distance: Callable[[AttentionBuilder], str]) -> None:
    with pytest.raises(PulsifyError, match="not proved to depend only on the distance of frames"):
        load_decluttered(shaw(window(5, 0), distance)[0]).pulsify()
