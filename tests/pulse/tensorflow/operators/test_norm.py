"""Normalisations and what is quantised for training, against numpy."""

import numpy as np
import pytest

from pulse.errors import LoadError
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, Type
from tests.pulse.tensorflow.operator_results import results_of_operator

IMAGES = normal_noise(1, 3, 4, 5)
SCALE, OFFSET, MEAN = (normal_noise(5, seed=seed) for seed in range(3))
VARIANCE = np.abs(normal_noise(5, seed=3))
PARAMETERS = (IMAGES, SCALE, OFFSET, MEAN, VARIANCE)


@pytest.mark.parametrize("is_training", [False, True])
def test_batch_norm_agrees_with_numpy(is_training: bool) -> None:
    """Training mode uses the mean and the variance of the batch itself."""
    mean = IMAGES.mean((0, 1, 2)) if is_training else MEAN
    variance = IMAGES.var((0, 1, 2)) if is_training else VARIANCE
    (output,) = results_of_operator("FusedBatchNormV3", PARAMETERS, is_training=is_training, epsilon=0.01)
    expected = (IMAGES - mean) / np.sqrt(variance + 0.01) * SCALE + OFFSET
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


def test_own_statistics_keep_the_digits_of_small_deviations() -> None:
    """The batch is far from zero: Keras 2's LayerNormalization is this operator."""
    images = IMAGES.astype(np.float64) + 1000
    parameters = (images.astype(np.float32), np.ones(5, np.float32), np.zeros(5, np.float32), MEAN, VARIANCE)
    (output,) = results_of_operator("FusedBatchNormV3", parameters, is_training=True, epsilon=0.01)
    images = parameters[0].astype(np.float64)
    expected = (images - images.mean((0, 1, 2))) / np.sqrt(images.var((0, 1, 2)) + 0.01)
    np.testing.assert_allclose(output, expected, atol=4e-5)


def test_complex_numbers_of_infinite_ones_are_real() -> None:
    x = np.float32([1, np.inf, np.nan])
    (output,) = results_of_operator("Cast", (x,), SrcT=F32, DstT=Type("c64"))
    np.testing.assert_array_equal(output, np.stack([x, 0 * np.ones(3)], -1))


def test_statistics_of_batch_norm_in_training_are_refused() -> None:
    with pytest.raises(LoadError, match="training"):
        results_of_operator("FusedBatchNormV3", PARAMETERS, 2, is_training=True)


def test_fake_quantisation_rounds_to_steps() -> None:
    (output,) = results_of_operator("FakeQuantWithMinMaxArgs", (IMAGES,), min=-1.0, max=1.0, num_bits=8)
    step = 2 / 255
    assert np.abs(output - np.clip(IMAGES, -1, 1)).max() <= step
    assert np.abs(output / np.float32(step) - np.rint(output / np.float32(step))).max() < 1e-3
