"""Attention in windows that a reshape makes: each window sees itself and the one before, and streams as it is."""

from onnx import ModelProto

from tests.pulse.cases.attention import WIDTH, Graph
from tests.pulse.cases.build import Feeds, floats
from tests.pulse.pulsify.attention_checks import check

SIZE = 4


def windows() -> tuple[ModelProto, Feeds]:
    """The frames are padded to whole windows; places before the first frame and behind the own one are hidden."""
    g = Graph()
    zero, one = g.integers(0), g.integers(1)
    frames = g.add("Unsqueeze", g.frames(), zero)
    count = g.add("Div", g.add("Add", frames, g.integers(SIZE - 1)), g.integers(SIZE))
    total = g.add("Mul", count, g.integers(SIZE))
    more = g.add("Concat", g.integers(0, 0, 0, 0), g.add("Sub", total, frames), zero, axis=0)
    x = g.add("Pad", "x", more)

    def split(wire: str, *rest: int) -> str:
        return g.add("Reshape", wire, g.add("Concat", count, g.integers(SIZE, *rest), axis=0))

    def with_last(wire: str, rank: int, fill: str) -> str:
        before = g.add("Pad", wire, g.integers(1, *[0] * (2 * rank - 1)), fill)
        return g.add("Concat", g.add("Slice", before, zero, count, zero, one), wire, axis=1)

    q, k, v = (split(g.linear(x), WIDTH) for _ in range(3))
    k, v = (with_last(each, 3, g.constant(0.0)) for each in (k, v))
    steps = g.add("Range", g.number(0), g.add("Squeeze", total), g.number(1))
    own = split(steps)
    seen = with_last(own, 2, g.number(-1))
    ahead = g.add("Less", g.add("Unsqueeze", own, g.integers(2)), g.add("Unsqueeze", seen, one))
    empty = g.add("Unsqueeze", g.add("Equal", seen, g.number(-1)), one)
    scores = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 2, 1]))
    scores = g.add("Where", g.add("Or", ahead, empty), g.constant(-1e9), scores)
    y = g.add("MatMul", g.add("Softmax", scores, axis=2), v)
    y = g.add("Reshape", y, g.add("Concat", one, total, g.integers(WIDTH), axis=0))
    g.add("Slice", y, zero, frames, one, one, name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return g.model(feeds), feeds


def test_windows_of_a_reshape() -> None:
    """A pulse is a window or several; the last one may be cut short."""
    model = check(*windows(), 1, pulses=(SIZE, 3 * SIZE), lengths=(1, 4, 5, 13, 24, 31))
    assert model.outputs[0].delay == 0
