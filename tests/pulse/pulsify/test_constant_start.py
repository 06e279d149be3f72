"""Zeros instead of mirrored frames before the stream: less delay, and all frames that see no padding as before."""

import numpy as np
import pytest

import pulse
from pulse.models import TypedModel
from tests.noise import normal_noise
from tests.pulse.model_builder import ModelBuilder


def mirrored_windows() -> TypedModel:
    """Two causal windows after mirrored padding, the second also at the end."""
    builder = ModelBuilder(0, x="1,1,T")
    x = builder.conv(builder.pad(builder["x"], (4, 0), "reflect"), 5)
    return builder.model(builder.conv(builder.pad(x, (2, 2), "edge"), 5))


def test_a_constant_start_only_changes_delay_and_first_frames() -> None:
    typed = mirrored_windows()
    with pytest.warns(pulse.PulseWarning, match=r"frames before the stream are 0 .*a different model"):
        other = typed.with_constant_start()
    assert [model.pulsify(pulse=1).outputs[0].delay for model in (typed, other)] == [6, 2]
    pulse.verify(other).require()
    x = normal_noise(1, 1, 40)
    (expected,), (output,) = typed.run(x).values(), other.run(x).values()
    np.testing.assert_array_equal(output[..., 6:], expected[..., 6:])
    assert (output[..., :4] != expected[..., :4]).all()


def test_a_model_without_mirrored_frames_has_no_constant_start() -> None:
    builder = ModelBuilder(0, x="1,1,T")
    typed = builder.model(builder.pad(builder["x"], (3, 3), fill=0.5))
    with pytest.raises(pulse.PulsifyError, match="mirrors or repeats no frames before the stream"):
        typed.with_constant_start()
