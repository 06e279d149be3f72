"""GTCRN, a published speech enhancer: the offline file, streamed, equals itself and its author's streaming twin."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.models import PulsedModel
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import run_whole
from tests.agreement import Expected
from tests.backends import BACKENDS
from tests.onnxruntime_sessions import open_session
from tests.shared import shared_path

FRAMES = 45
MAX_DIFFERENCE = 1e-5


def session(name: str) -> Any:
    return open_session(shared_path("models") / name)


@cache
def sound() -> np.ndarray:
    """A random spectrogram of speech-like levels."""
    rng = np.random.default_rng(7)
    return (rng.standard_normal((1, 257, FRAMES, 2)) * rng.uniform(0, 3, (1, 257, FRAMES, 1))).astype(
        np.float32
    )


@cache
def offline() -> Expected:
    return Expected(pulse.load(shared_path("models") / "gtcrn_offline.onnx").analyse(), {"mix": sound()})


@cache
def pulsed_model(frames: int) -> PulsedModel:
    return (
        pulse.load(shared_path("models") / "gtcrn_offline.onnx").analyse().declutter().pulsify(pulse=frames)
    )


def streamed_mix(frames: int, backend: str) -> np.ndarray:
    return run_whole(compile_model(pulsed_model(frames), backend).spawn(), {"mix": sound()}, np.nan)[0]["enh"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("frames", [1, 4])
def test_streamed_gtcrn_agrees_with_offline(frames: int, backend: str) -> None:
    (enhanced,) = session("gtcrn_offline.onnx").run(None, {"mix": sound()})
    assert pulsed_model(frames).outputs[0].delay == 0
    expected = offline()
    expected.assert_near({"enh": enhanced}, "onnxruntime")
    expected.assert_agrees({"enh": streamed_mix(frames, backend)}, backend)


def test_streamed_agrees_with_the_authors_streaming_twin() -> None:
    twin = session("gtcrn_stream.onnx")
    caches = {
        entry.name: np.zeros(entry.shape, np.float32) for entry in twin.get_inputs() if entry.name != "mix"
    }
    frames: list[np.ndarray] = []
    for frame in range(FRAMES):
        enhanced, *after = twin.run(None, {"mix": sound()[:, :, frame : frame + 1], **caches})
        caches = dict(zip(caches, after, strict=True))
        frames.append(enhanced)
    np.testing.assert_allclose(
        streamed_mix(1, "numba"), np.concatenate(frames, 2), rtol=0, atol=MAX_DIFFERENCE
    )
