"""Lengths of streams: how they grow, the delay that they need, and streams that are bounded or cut at the end."""

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import pulse
from pulse.dim import SymbolScope
from pulse.pulsify.lengths import determines_length, lag, never_shrinks
from streaming import Session
from tests.backends import BACKENDS
from tests.noise import normal_noise


def model(end: Any, kernel: int = 3) -> bytes:
    """``x[:, :, :end]`` and a convolution with padding at both ends; both are outputs."""
    constants = {
        "start": np.array([0]),
        "end": np.array([end]),
        "axis": np.array([2]),
        "w": np.linspace(1, 2, kernel, dtype=np.float32).reshape(1, 1, kernel),
    }
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["cut"]),
        helper.make_node("Conv", ["cut", "w"], ["y"], pads=[kernel // 2] * 2),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, "T"])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("cut", "y")]
    stored = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "cut", [x], outputs, stored)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("end", "pulse_frames"), [(20, 4), (20, 7), (1, 3), (-3, 4), (-5000, 1), (-500, 160)]
)
def test_the_end_of_a_cut_stream_is_exact(end: int, pulse_frames: int, backend: str) -> None:
    typed = pulse.load(model(end)).analyse()
    session = Session(typed.declutter().pulsify(pulse=pulse_frames).compile(backend))
    for length in (30, 25, 21) if end > -100 else (-end + 21, -end + 1000):
        x = normal_noise(1, 1, length, seed=length)
        offline = typed.run(x)
        pieces = [
            session.push(x[:, :, : length // 2]),
            session.push(x[:, :, length // 2 :]),
            session.flush(np.nan),
        ]
        for name, expected in offline.items():
            output = np.concatenate([piece[name] for piece in pieces], 2)
            assert output.shape == expected.shape
            np.testing.assert_allclose(output, expected, 1e-4, 1e-5)
        session.reset()


def test_a_bound_far_away_adds_no_delay() -> None:
    pulsed = pulse.load(model(2**30)).analyse().pulsify(pulse=4)
    assert {port.name: port.delay for port in pulsed.outputs} == {"cut": 0, "y": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("T", True), ("T/2-3", True), ("min(T,5)", True), ("T%7", False), ("max(0,100-T)", False)],
)
def test_lengths_that_never_fall_grow(text: str, expected: bool) -> None:
    scope = SymbolScope()
    symbol = scope.symbol("T")
    assert never_shrinks(scope.parse(text), symbol) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T", 0),
        ("T-2", 2),
        ("T+3", -3),
        ("max(0,T-50000)", 50000),
        ("T/2", None),
        ("min(T,20)", 0),
        ("min(T/2,20)", 20),
    ],
)
def test_the_lag_is_the_smallest_delay_of_certain_frames(text: str, expected: int | None) -> None:
    scope = SymbolScope()
    symbol = scope.symbol("T")
    scope.assume("T >= 0")
    assert lag(scope.parse(text), Fraction(1), symbol, 1) == expected


def random_length(rng: np.random.Generator, scope: SymbolScope) -> str:
    """A length made of cuts: to multiples, past the end, at bounds, by rates."""
    text = "T"
    for _ in range(int(rng.integers(1, 4))):
        number = int(rng.choice([2, 3, 7, 70, 90, 480, 1000]))
        text = str(
            rng.choice(
                [
                    f"({text})/{number}*{number}",
                    f"(({text})+{number - 1})/{number}*{number}",
                    f"max(0,({text})-{number})",
                    f"max(({text})-{number},min({text},{2 * number}))",
                    f"2*({text})-{number}*(({text})/{number})",
                    f"min({text},{number})",
                ]
            )
        )
        text = str(scope.parse(text))
    return text


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 260), marks=pytest.mark.slow)], ids=len)
def test_delays_of_random_lengths_suffice_and_are_mostly_minimal(seeds: range) -> None:
    """Tried at every pulse of 6000 frames; lengths that fall somewhere do not grow."""
    reached: Counter[str] = Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        scope = SymbolScope()
        symbol = scope.symbol("T")
        scope.assume("T >= 0")
        length = scope.parse(random_length(rng, scope))
        pulse_frames = int(rng.choice([1, 7, 16, 480]))
        frames = [max(0, length.eval({symbol: index})) for index in range(6000)]
        falls = any(later < now for now, later in itertools.pairwise(frames))
        assert not (never_shrinks(length, symbol) and falls), length
        if falls:
            reached["falls"] += 1
            continue
        reached["grows"] += never_shrinks(length, symbol)
        smallest = lag(length, Fraction(1), symbol, pulse_frames)
        max_frames = length.bounds()[1]
        unsure = [
            index
            for index in range(0, 6000, pulse_frames)
            if max_frames is None or frames[index] < max_frames
        ]
        late = max((index - frames[index] for index in unsure), default=None)
        if smallest is None:
            reached["no delay suffices" if length.slope(symbol) != 1 else "not proved"] += 1
            continue
        reached["a delay"] += 1
        assert late is None or smallest >= late, (length, pulse_frames)
        reached["the minimum delay"] += late is None or smallest == late
    assert reached["falls"] >= 2, reached
    assert reached["grows"] >= 0.6 * len(seeds), reached
    assert reached["the minimum delay"] >= 0.95 * reached["a delay"] >= 0.6 * len(seeds), reached
    assert reached["not proved"] <= 2, reached


def pulsify_range(limit: str) -> None:
    """Pulsify a model whose outputs are the stream and a range up to a function of its length."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], start=2, end=3),
        helper.make_node("Squeeze", ["shape"], ["T"]),
        helper.make_node(limit, ["T", "c"], ["stop"]),
        helper.make_node("Range", ["zero", "stop", "one"], ["y"]),
        helper.make_node("Relu", ["x"], ["z"]),
    ]
    stored = [numpy_helper.from_array(np.array(v), n) for n, v in (("c", 10), ("zero", 0), ("one", 1))]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, "T"])
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.INT64, None),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, None),
    ]
    graph = helper.make_graph(nodes, "range", [x], outputs, stored)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    pulse.load(proto).analyse().pulsify(pulse=2)


@pytest.mark.parametrize("limit", ["Min", "Mod"])
def test_positions_that_do_not_grow_are_refused(limit: str) -> None:
    with pytest.raises(pulse.PulsifyError, match="does not grow with T"):
        pulsify_range(limit)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(1.5, id="fraction"),
        pytest.param("8", id="text"),
        pytest.param(True, id="bool"),
        pytest.param(np.float64(4), id="numpy float"),
    ],
)
def test_fractional_pulses_are_refused(wrong: Any) -> None:
    with pytest.raises(pulse.PulsifyError, match="whole number of frames"):
        pulse.load(model(20)).analyse().pulsify(pulse=wrong)


@pytest.mark.parametrize(
    ("length", "tells"),
    [
        ("T", True), ("T+1", False), ("T/2*2", True), ("3*T+2", True), ("3*T+3", False), ("(T+1)/2", False),
        ("T+10*(T>=2000)", False), ("T-10*(T>=2000)", True), ("T/2", True),
    ],
)  # fmt: skip
def test_inputs_determine_the_length_if_they_do_for_every_length(length: str, tells: bool) -> None:
    """Not at the first lengths alone: one of these jumps ahead of the stream at 2000 frames."""
    scope = SymbolScope()
    dim, symbol = scope.parse(length), scope.symbol("T")
    rate = dim.slope(symbol)
    assert determines_length(dim, rate, symbol) is tells
    counts = range(rate.denominator, 3000 * rate.denominator, rate.denominator)
    assert all(dim.eval({symbol: x - 1}) < rate * x for x in counts) is tells
