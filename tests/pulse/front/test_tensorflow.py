"""TensorFlow's audio operators, written once more as loops, and against its own results."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.front import tf_mfcc, tf_spectrogram
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline, sound
from tests.pulse.front.tensorflow_spectra import cepstrum, powers
from tests.shared import shared_path


@pytest.mark.parametrize(("size", "stride"), [(640, 320), (80, 40), (64, 64), (100, 130)])
@pytest.mark.parametrize("squared", [True, False])
def test_the_spectrogram_agrees_with_its_formula(size: int, stride: int, squared: bool) -> None:
    x = sound(2000)
    model = tf_spectrogram(size, stride, magnitude_squared=squared)
    expected = powers(x, size, stride)
    assert_near(offline(model, x), (expected if squared else np.sqrt(expected))[None])
    assert_streams_agree(model, x, (1, 2))


@pytest.mark.parametrize(
    ("rate", "count", "coefficients", "low", "high"),
    [
        (16000, 40, 13, 20.0, 4000.0),
        (8000, 20, 10, 20.0, 4000.0),
        (16000, 30, 30, 300.0, 7900.0),
        (16000, 5, 1, 0.0, 8000.0),
    ],
)
def test_tf_mfcc_agrees_with_its_formula(
    rate: int, count: int, coefficients: int, low: float, high: float
) -> None:
    x = powers(sound(4000), 400, 160)[None].astype(np.float32)
    model = tf_mfcc(
        rate,
        high,
        lower_frequency_limit=low,
        filterbank_channel_count=count,
        dct_coefficient_count=coefficients,
        shape="1,frames,257",
    )
    assert_near(offline(model, x), cepstrum(x[0], rate, count, coefficients, low, high)[None])
    assert_streams_agree(model, x)


@pytest.mark.parametrize("size", [64, 80])
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_level_leaves_bins_of_a_zero_spectrum_empty(size: int, noise: float) -> None:
    """A logarithm of a level's rest would be one of rounding errors: 14 in place of 27.6 for frames of 64 samples."""
    x = (0.7 + noise * sound(1000)).astype(np.float32)
    model = pulse.chain(
        tf_spectrogram(size, 32, magnitude_squared=True),
        tf_mfcc(
            16000,
            7000.0,
            lower_frequency_limit=20.0,
            filterbank_channel_count=12,
            dct_coefficient_count=8,
            shape=f"1,frames,{(1 << (size - 1).bit_length()) // 2 + 1}",
        ),
    )
    assert_near(offline(model, x), cepstrum(powers(x, size, 32), 16000, 12, 8, 20.0, 7000.0)[None], 1e-5)
    assert_streams_agree(model, x)


@pytest.mark.parametrize("number", [0, 1])
def test_tf_spectrogram_and_mfcc_agree_with_tensorflow(number: int) -> None:
    case = np.load(shared_path("tensorflow/audiospectrogram_mfcc.npz"))
    model = pulse.chain(
        tf_spectrogram(80, 40, magnitude_squared=True),
        tf_mfcc(8000, filterbank_channel_count=20, dct_coefficient_count=10, shape="1,frames,65"),
    )
    x = case[f"{number}/in0/x:0"]
    assert_near(offline(model, x), case[f"{number}/out0/Identity:0"])
    assert_streams_agree(model, x)


def test_the_front_agrees_with_that_of_a_published_model() -> None:
    case = np.load(shared_path("tensorflow/kws_GRU_S.npz"))
    x = case["in/decoded_sample_data"].T.copy()
    spectrogram = tf_spectrogram(640, 640, magnitude_squared=True)
    assert_near(offline(spectrogram, x), case["out/AudioSpectrogram"])
    model = pulse.chain(spectrogram, tf_mfcc(dct_coefficient_count=10))
    assert_near(offline(model, x), case["out/Mfcc"])
    assert_streams_agree(model, x, (1,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(tf_spectrogram, 1), "tf_spectrogram: window_size=1 must be an integer from 2"),
        (partial(tf_spectrogram, stride=0), "stride=0 must be an integer from 1"),
        (
            partial(tf_mfcc, dct_coefficient_count=41),
            "dct_coefficient_count=41 must be an integer from 1 to 40",
        ),
        (partial(tf_mfcc, 8000, 5000.0), "a band from 20 to 5000 Hz; it must lie within 0 and 4000 Hz"),
        (partial(tf_mfcc, shape="1,frames,1"), "a spectrogram has at least 2"),
    ],
)
def test_tf_functions_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)
