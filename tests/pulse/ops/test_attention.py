"""Banded attention by its definition, one pair of frames at a time; its facts, and its pulses."""

import math

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.errors import FactError
from pulse.facts import TypedFact
from pulse.ops.attention import BandedAttention, BandedAttentionStream
from pulse.ops.clock import Clock
from pulse.ops.op import Banded, Pointwise, Whole
from tests.noise import next_noise

LOW = -np.inf


def by_definition(op: BandedAttention, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the attention of single matrices, by the formula."""
    y = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        weights: dict[int, float] = {}
        for j in range(max(0, i - op.back), min(len(q), i + op.ahead + 1)):
            bias = op.bias[i % op.period, j - i + op.back]
            if bias > LOW:
                weights[j] = math.exp(op.scale * float(q[i] @ k[j]) + bias)
        y[i] = (
            sum(weight * v[j] for j, weight in weights.items()) / sum(weights.values())
            if weights
            else op.empty
        )
    return y


def table(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random numbers, a third of them masked."""
    bias = next_noise(rng, *shape)
    return np.where(rng.random(shape) < 0.3, np.float32(LOW), bias)


OPS = [
    (1, 4, 3),
    (3, 6, 2),
    (2, 3, 5),
    (1, 1, 0),
    (4, 3, -1),
]
"""The ops' period, width and back."""


@pytest.mark.parametrize(("period", "width", "back"), OPS)
@pytest.mark.parametrize("frames", [1, 2, 9])
def test_banded_attention_agrees_with_the_full_one_with_a_mask(
    period: int, width: int, back: int, frames: int
) -> None:
    rng = np.random.default_rng(frames)
    q, k = next_noise(rng, 2, frames, 4)
    v = next_noise(rng, frames, 3)
    op = BandedAttention(0.5, table(rng, period, width), back, 0.25)
    (y,) = op.eval([q, k, v], {})
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, by_definition(op, q, k, v), 1e-5, 1e-6)


@pytest.mark.parametrize(("period", "width", "back"), OPS)
@pytest.mark.parametrize("pulse", [1, 3, 8])
def test_pulses_of_banded_attention_agree_with_the_whole(
    period: int, width: int, back: int, pulse: int
) -> None:
    """Frames outside of the stream are NaN; two heads of queries share keys."""
    rng = np.random.default_rng(pulse)
    frames = 11
    q = next_noise(rng, 2, frames, 4)
    k = next_noise(rng, 1, frames, 4)
    v = next_noise(rng, frames, 3)
    op = BandedAttention(0.5, table(rng, 2, period, width), back, np.nan)
    (expected,) = op.eval([q, k, v], {})
    symbol = SymbolScope().symbol("T")
    offset = max(2, width - 1 - back)
    stream = BandedAttentionStream(op, offset, TDim.of(symbol))
    clock = Clock(symbol)
    pulses = -(-(frames + offset) // pulse)

    def frames_from(x: np.ndarray, first: int, count: int) -> np.ndarray:
        rows = np.arange(first, first + count)
        inside = (rows >= 0) & (rows < frames)
        return np.where(inside[:, None], x[..., np.where(inside, rows, 0), :], np.float32(np.nan))

    parts: list[np.ndarray] = []
    for number in range(pulses):
        first = number * pulse - offset
        if (number + 1) * pulse > frames:
            clock.end = frames
        window = [frames_from(x, first - back, pulse + width - 1) for x in (k, v)]
        parts += stream.step([frames_from(q, first, pulse), *window], stream.initial_state(), clock)
        clock.pulse += 1
    output = np.concatenate(parts, 1)
    np.testing.assert_allclose(output[:, offset : offset + frames], expected, 1e-5, 1e-6)
    assert not output[:, :offset].any()
    assert not output[:, offset + frames :].any()


def facts_of(*texts: str) -> list[TypedFact]:
    scope = SymbolScope()
    return [TypedFact.parse(text, scope) for text in texts]


def test_banded_attention_gives_a_value_for_each_query() -> None:
    op = BandedAttention(1.0, np.zeros((2, 1, 4), np.float32), 3)
    (fact,) = op.facts(facts_of("1,2,T,4", "2,T,4", "T,7"))
    assert str(fact) == "1,2,T,7,f32"
    assert (op.width, op.ahead, op.period) == (4, 0, 1)
    assert op.detail().startswith("back 3 ahead 0 period 1 scale 1 bias ")
    assert op.detail() != BandedAttention(1.0, np.ones((2, 1, 4), np.float32), 3).detail()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("T,4", "T,5", "T,4"), "channels of queries and keys"),
        (("2,4", "3,4", "3,4"), "frames of queries and keys"),
        (("T,4", "3,4", "4,4"), "frames of keys and values"),
        (("4", "T,4", "T,4"), "must be"),
        (("T,4,f64", "T,4", "T,4"), "one float type, got f64, f32, f32"),
        (("T,4,i64", "T,4,i64", "T,4,i64"), "one float type"),
        (("3,T,4", "3,T,4", "3,T,4"), "bias"),
    ],
)
def test_facts_that_do_not_fit_are_refused(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(FactError, match=message):
        BandedAttention(1.0, np.zeros((2, 1, 4), np.float32), 3).facts(facts_of(*texts))


def test_attention_is_banded_over_time_pointwise_over_batch() -> None:
    """Other axes are refused."""
    op = BandedAttention(1.0, np.zeros((1, 6), np.float32), 3)
    facts = facts_of("1,2,T,4", "2,T,4", "2,T,4")
    banded = op.relation(facts, [2, 1, 1])
    assert isinstance(banded, Banded)
    assert (banded.axis, banded.back, banded.ahead) == (2, 3, 2)
    stream = banded.make_op(5, TDim.of(9))
    assert isinstance(stream, BandedAttentionStream)
    assert stream.offset == 5
    assert op.relation(facts_of("T,9,4", "T,9,4", "T,9,4"), [0, 0, 0]) == Pointwise((0,))
    assert isinstance(op.relation(facts, [2, None, 1]), Whole)
    assert isinstance(op.relation(facts_of("9,T", "9,T", "9,4"), [1, 1, None]), Whole)
