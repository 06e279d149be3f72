"""Products with the basis of a Fourier transform: the errors of their weights are those of the transform."""

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.models import TypedModel
from pulse.ops.conv import Conv
from pulse.ops.matmul import MatMul
from pulse.proof.tolerance import ExpectedOutputs
from pulse.proof.transform_weights import TransformWeights
from tests.noise import normal_noise
from tests.pulse.model_builder import ModelBuilder, pads_of

pytestmark = pytest.mark.full_proofs

LENGTH, HOP = 512, 128
WINDOWS = {"rectangular": np.ones(LENGTH), "hann": np.hanning(LENGTH + 1)[:-1]}


def basis(window: str) -> Array:
    """Cosines and sines, f32 [2 * bins, 1, LENGTH]: some are 1e-14 where they should be zero."""
    turns = np.outer(np.arange(LENGTH // 2 + 1), np.arange(LENGTH)) / LENGTH
    parts = np.concatenate([np.cos(2 * np.pi * turns), -np.sin(2 * np.pi * turns)])
    return (parts * WINDOWS[window]).astype(np.float32)[:, None]


def transform(window: str) -> TypedModel:
    """A spectrum by a convolution, of frames that end at each hop: the first ones are zeros but for their end."""
    builder = ModelBuilder(x="1,1,T")
    op = Conv((HOP,), (1,), pads_of((LENGTH - 1, 0)))
    return builder.model(builder.add("y", op, builder["x"], builder.constant(basis(window))))


@pytest.mark.parametrize("window", WINDOWS)
def test_a_spectrum_is_proved_at_every_length(window: str) -> None:
    model = transform(window)
    tiny = np.abs(basis(window)) < 1e-12
    assert np.count_nonzero(tiny & (basis(window) != 0)) > LENGTH
    assert "fourier" in str(model.pulsify(pulse=HOP).compile().listing())
    report = pulse.verify(model, pulse=HOP, lengths=[1, 2, HOP, LENGTH, 5 * LENGTH + 3])
    assert report.outcome == "equal", report.divergence


@pytest.mark.parametrize("frames", [1, 3 * LENGTH])
@pytest.mark.parametrize("change", ["gain", "shift", "zero"])
def test_a_wrong_spectrum_is_found(frames: int, change: str) -> None:
    model = transform("rectangular")
    expected = ExpectedOutputs.of(model, {"x": normal_noise(1, 1, frames)})
    good, bad = expected.native["y"], expected.native["y"].copy()
    assert expected.judge("y", good, 2).agrees
    match change:
        case "gain":
            bad[:, 5] *= np.float32(1 + 1e-4)
        case "shift":
            bad[:, 5] = bad[:, 6]
        case _:
            bad[:, 300] = 0
    judgement = expected.judge("y", bad, 2)
    assert judgement.wrong is not None
    assert set(np.nonzero(judgement.wrong)[1]) == {300 if change == "zero" else 5}


@pytest.mark.parametrize(
    ("weights", "slots"),
    [
        (basis("hann")[:, 0].T, [1]),
        (normal_noise(LENGTH, LENGTH), []),
        (np.eye(LENGTH, dtype=np.float32), []),
    ],
    ids=["basis", "noise", "identity"],
)
def test_only_a_basis_has_the_scale_of_its_points(weights: Array, slots: list[int]) -> None:
    inputs = [normal_noise(1, 3, LENGTH).astype(np.float64), np.ascontiguousarray(weights, np.float64)]
    scales = TransformWeights().scales(0, MatMul(), inputs)
    assert list(scales) == slots
    for scale in scales.values():
        np.testing.assert_allclose(scale[:, 0], WINDOWS["hann"], atol=1e-6)


@pytest.mark.parametrize(("scaled", "size"), [("bin", 1e-6), ("bin", 1e-4), ("point", 1e-5), ("point", 1e-3)])
def test_a_small_bin_or_window_excuses_no_large_error(scaled: str, size: float) -> None:
    """The error of an element is that of its bin and of its place in the window."""
    weights = basis("rectangular")
    if scaled == "bin":
        weights[5] *= np.float32(size)
    else:
        weights[:, :, -1] *= np.float32(size)
    builder = ModelBuilder(x="1,1,T")
    op = Conv((HOP,), (1,), pads_of((LENGTH - 1, 0)))
    model = builder.model(builder.add("y", op, builder["x"], builder.constant(weights)))
    expected = ExpectedOutputs.of(model, {"x": normal_noise(1, 1, 1 if scaled == "point" else LENGTH)})
    bad = expected.native["y"].copy()
    bad[:, 5] *= np.float32(1 + 1e-4)
    assert expected.judge("y", expected.native["y"], 2).agrees
    judgement = expected.judge("y", bad, 2)
    assert judgement.wrong is not None
    assert set(np.nonzero(judgement.wrong)[1]) == {5}
