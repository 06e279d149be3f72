"""Gain, filters of one coefficient and the limiter, against loops over samples."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.front import dc_block, deemphasis, gain, limiter, preemphasis
from pulse.models import TypedModel
from tests.pulse.front import references
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline, sound


def filter_sound(x: Array, before: float, back: float) -> Array:
    """``y[t] = x[t] + before*x[t-1] + back*y[t-1]``, of one signal."""
    y, last_x, last_y = list[float](), 0.0, 0.0
    for value in x[0].astype(np.float64):
        last_y = float(value + before * last_x + back * last_y)
        last_x = float(value)
        y.append(last_y)
    return np.array([y])


FILTERS: list[tuple[TypedModel, float, float]] = [
    (preemphasis(), -0.97, 0.0),
    (preemphasis(-0.5), 0.5, 0.0),
    (deemphasis(0.9), 0.0, 0.9),
    (deemphasis(0.0), 0.0, 0.0),
    (dc_block(), -1.0, 0.995),
]


@pytest.mark.parametrize(
    ("model", "before", "back"),
    FILTERS,
    ids=["preemphasis", "half preemphasis", "deemphasis", "no deemphasis", "dc_block"],
)
def test_filters_agree_with_their_recursion(model: TypedModel, before: float, back: float) -> None:
    several = [sound(length) + np.float32(0.1) for length in (1, 777)]
    for x in several:
        assert_near(offline(model, x), filter_sound(x, before, back))
    assert assert_streams_agree(model, several, (1, 64)) == {"sound": 0}


def test_preemphasis_repeats_the_first_sample() -> None:
    x = sound(500)
    expected = filter_sound(x, -0.97, 0.0)
    expected[0, 0] = x[0, 0] * 0.03
    model = preemphasis(first="repeat")
    assert_near(offline(model, x), expected)
    assert_streams_agree(model, x)


def test_preemphasis_agrees_with_torchaudio() -> None:
    torch, functional = references.torch(), references.torchaudio().functional
    x = sound(3000)
    assert_near(offline(preemphasis(0.9), x), functional.preemphasis(torch.tensor(x), 0.9).numpy())


def test_gain_multiplies() -> None:
    x = sound(100)
    assert_near(offline(gain(0.25), x), x * 0.25)
    assert_near(offline(gain(db=-6.0), x), x * 10**-0.3)
    spectrum = sound(5 * 8 * 2).reshape(1, 8, 5, 2)
    assert_near(offline(gain(3.0, shape="1,8,frames,2"), spectrum), spectrum * 3)
    assert_streams_agree(gain(3.0, shape="1,8,frames,2"), spectrum)


def limit_sound(x: Array, threshold: float, ahead: int, hold: int) -> Array:
    """The result for one signal, sample by sample."""
    needed = np.minimum(1, threshold / np.maximum(np.abs(x[0].astype(np.float64)), 1e-30))

    def smallest_gain(sample: int) -> float:
        return float(needed[max(0, sample - hold) : max(0, sample + ahead + 1)].min(initial=1.0))

    gains = [np.mean([smallest_gain(u) for u in range(t - ahead, t + 1)]) for t in range(x.shape[1])]
    return x * np.array([gains])


@pytest.mark.parametrize(("ahead", "hold"), [(5, 10), (0, 0), (12, 0), (0, 7), (30, 211)])
def test_the_limiter_agrees_with_its_formula(ahead: int, hold: int) -> None:
    x = sound(700) * 3
    model = limiter(0.5, float(ahead), hold_ms=float(hold), sample_rate=1000)
    y = offline(model, x)
    assert_near(y, limit_sound(x, 0.5, ahead, hold))
    assert np.abs(y).max() <= 0.5 * (1 + 1e-6)
    assert assert_streams_agree(model, x, (1, 50)) == {"sound": ahead}


def test_the_limiter_leaves_quiet_sound_alone() -> None:
    x = np.clip(sound(400) * 0.1, -0.5, 0.5)
    np.testing.assert_allclose(offline(limiter(0.5), x), x, rtol=1e-6)


def test_verify_proves_dc_block_and_limiter() -> None:
    pulse.verify(dc_block(), pulse=16).require()
    pulse.verify(limiter(0.5, sample_rate=1000), pulse=16).require()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(gain), "gain: give either factor or db"),
        (partial(gain, 1.0, 2.0), "give either factor or db"),
        (partial(gain, float("inf")), "factor=inf must be a finite number"),
        (partial(preemphasis, first="mirror"), "first='mirror' must be one of 'zero', 'repeat'"),
        (partial(preemphasis, shape="1,T,2"), "must have 2 axes, such as '1,T'"),
        (partial(deemphasis, 1.0), "coefficient=1.0 must be a finite number of at least 0 and at most 1"),
        (partial(dc_block, -0.1), "coefficient=-0.1 must be a finite number of at least 0"),
        (partial(limiter, 0.0), "threshold=0.0 must be a finite number above 0"),
        (partial(limiter, lookahead_ms=-1.0), "lookahead_ms=-1.0 must be a finite number of at least 0"),
    ],
)
def test_level_functions_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)
