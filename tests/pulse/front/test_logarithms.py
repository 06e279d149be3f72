"""Logarithms of features, against numpy and librosa."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from pulse.facts import Array
from pulse.front import db, log, whisper_log
from tests.pulse.front.references import librosa
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline


def positive() -> Array:
    """Values over many orders of magnitude, and zeros."""
    x = 10 ** np.random.default_rng(0).uniform(-12, 3, (1, 31, 8))
    x[0, 5] = 0
    return x.astype(np.float32)


@pytest.mark.parametrize(("base", "function"), [("natural", np.log), ("log2", np.log2), ("log10", np.log10)])
@pytest.mark.parametrize(("floor", "offset"), [(1e-10, 0.0), (0.0, 1e-6), (1e-3, 1e-4)])
def test_log_agrees_with_numpy(base: str, function: Any, floor: float, offset: float) -> None:
    x = positive()
    model = log(base, floor, offset=offset, shape="1,frames,8")
    assert_near(offline(model, x), function(np.maximum(x.astype(np.float64) + offset, floor)))
    assert_streams_agree(model, x)


def test_log_takes_any_shape() -> None:
    x = positive().transpose(0, 2, 1).copy()
    for shape in ("1,8,T", "1,8,frames"):
        assert_near(offline(log(shape=shape), x), np.log(np.maximum(x, 1e-10)))
    assert [symbol.name for symbol in log(shape="B,T,8").symbols] == ["B", "T"]


@pytest.mark.parametrize("of", ["power", "amplitude"])
@pytest.mark.parametrize("reference", [1.0, 20.0])
def test_decibels_agree_with_their_formula(of: str, reference: float) -> None:
    x = positive()
    factor, floor = (1, 1e-10) if of == "power" else (2, 1e-5)
    expected = factor * 10 * np.log10(np.maximum(x.astype(np.float64), floor) / reference)
    model = db(of, reference, shape="1,frames,8")
    assert_near(offline(model, x), expected)
    assert_streams_agree(model, x)
    limited = db(of, reference, top_db=80.0, maximum=20.0, shape="1,frames,8")
    assert_near(offline(limited, x), np.maximum(expected, -60))
    assert_streams_agree(limited, x)


def test_db_agrees_with_librosa() -> None:
    x = positive()
    assert_near(offline(db(shape="1,frames,8"), x), librosa().power_to_db(x, top_db=None))
    assert_near(
        offline(db("amplitude", 2.0, shape="1,frames,8"), x),
        librosa().amplitude_to_db(x, ref=2.0, top_db=None),
    )


def test_whisper_log_agrees_with_the_formula_of_whisper() -> None:
    """The recording's maximum is the fixed one, so the result is Whisper's."""
    x = positive()
    logs = np.log10(np.maximum(x.astype(np.float64), 1e-10))
    model = whisper_log(maximum=float(logs.max()), shape="1,frames,8")
    assert_near(offline(model, x), (np.maximum(logs, logs.max() - 8) + 4) / 4)
    assert_streams_agree(model, x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(log, "ten"), "base='ten' must be one of 'natural', 'log2', 'log10'"),
        (partial(log, floor=-1.0), "floor=-1.0 must be a finite number of at least 0"),
        (partial(db, "loudness"), "of='loudness' must be one of 'power', 'amplitude'"),
        (partial(db, top_db=80.0), "which a stream does not know; fix that value with maximum="),
        (partial(db, maximum=80.0), "top_db is missing"),
        (partial(db, floor=0.0), "floor=0.0 must be a finite number above 0"),
        (partial(whisper_log), "which a stream does not know; fix it with maximum="),
    ],
)
def test_logarithms_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)
