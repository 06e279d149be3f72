"""Attention in windows that a reshape makes: each window sees itself and the one before, and streams as it is."""

from onnx import ModelProto

from tests.pulse.cases.attention import WIDTH, AttentionBuilder
from tests.pulse.cases.build import Feeds, floats
from tests.pulse.pulsify.bands.attention_checks import assert_streams_agree

SIZE = 4


def windows() -> tuple[ModelProto, Feeds]:
    """The frames are padded to whole windows; positions before the first frame and after the own one are hidden."""
    graph = AttentionBuilder()
    zero, unit = graph.integers(0), graph.integers(1)
    frames = graph.add("Unsqueeze", graph.frames(), zero)
    count = graph.add("Div", graph.add("Add", frames, graph.integers(SIZE - 1)), graph.integers(SIZE))
    total = graph.add("Mul", count, graph.integers(SIZE))
    more = graph.add("Concat", graph.integers(0, 0, 0, 0), graph.add("Sub", total, frames), zero, axis=0)
    x = graph.add("Pad", "x", more)

    def into_windows(wire: str, *rest: int) -> str:
        return graph.add("Reshape", wire, graph.add("Concat", count, graph.integers(SIZE, *rest), axis=0))

    def with_last(wire: str, rank: int, fill: str) -> str:
        before = graph.add("Pad", wire, graph.integers(1, *[0] * (2 * rank - 1)), fill)
        return graph.add("Concat", graph.add("Slice", before, zero, count, zero, unit), wire, axis=1)

    q, k, v = (into_windows(graph.linear(x), WIDTH) for _ in range(3))
    k, v = (with_last(wire, 3, graph.constant(0.0)) for wire in (k, v))
    steps = graph.add("Range", graph.number(0), graph.add("Squeeze", total), graph.number(1))
    queries = into_windows(steps)
    last_seen = with_last(queries, 2, graph.number(-1))
    ahead = graph.add(
        "Less", graph.add("Unsqueeze", queries, graph.integers(2)), graph.add("Unsqueeze", last_seen, unit)
    )
    empty = graph.add("Unsqueeze", graph.add("Equal", last_seen, graph.number(-1)), unit)
    scores = graph.add("MatMul", q, graph.add("Transpose", k, perm=[0, 2, 1]))
    scores = graph.add("Where", graph.add("Or", ahead, empty), graph.constant(-1e9), scores)
    y = graph.add("MatMul", graph.add("Softmax", scores, axis=2), v)
    y = graph.add("Reshape", y, graph.add("Concat", unit, total, graph.integers(WIDTH), axis=0))
    graph.add("Slice", y, zero, frames, unit, unit, name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return graph.model(feeds), feeds


def test_attention_in_windows_of_a_reshape_streams_without_delay() -> None:
    """A pulse is a window or several; the last one may be cut short."""
    model = assert_streams_agree(*windows(), 1, pulses=(SIZE, 3 * SIZE), lengths=(1, 4, 5, 13, 24, 31))
    assert model.outputs[0].delay == 0
