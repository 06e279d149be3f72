"""Chains from audio to audio, compared with those that the models' authors wrote, on real audio."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pulse
from pulse import Stage, TypedModel, chain, front
from pulse.program.whole_stream import stream_whole
from streaming import Session
from tests.agreement import assert_close
from tests.shared import shared_path

SCALED = 1e-4
"""How far a sample may be off, as a part of the largest."""


def gtcrn(models: Path) -> TypedModel:
    """A centred STFT, the offline model, the inverse."""
    return chain(
        front.stft(n_fft=512, hop=256, window="sqrt_hann", center=True),
        models / "gtcrn_offline.onnx",
        front.istft(n_fft=512, hop=256, window="sqrt_hann", center=True),
    )


def dtln(models: Path) -> TypedModel:
    """Blocks of 512 by 128, two models of chunks, a spectrum between them; 384 samples late as its author's loop is."""
    return chain(
        front.frames(size=512, hop=128, pad_start=384),
        Stage(front.rfft(n=512, layout="T,F,2"), output_names=["spectrum"]),
        front.magnitude(shape="1,frames,257,2"),
        Stage(models / "dtln_1.onnx", output_names={"activation_2": "mask"}),
        Stage(
            front.mask(shape="1,frames,257,2", mask_shape="1,frames,257"),
            reads={"x": "spectrum", "mask": "mask"},
        ),
        front.irfft(n=512, layout="T,F,2"),
        models / "dtln_2.onnx",
        front.overlap_add(size=512, hop=128, trim_end=384),
    )


def fireredvad(models: Path) -> TypedModel:
    """Kaldi's filter bank, normalised by the file of its author, probabilities."""
    return chain(
        front.kaldi_fbank(),
        front.cmvn(path=shared_path("sound") / "cmvn.ark"),
        models / "fireredvad_stream.onnx",
        outputs=["probs"],
    )


CHAINS: dict[str, Callable[[Path], TypedModel]] = {
    "gtcrn_center": gtcrn,
    "dtln_blocks": dtln,
    "fireredvad_en": fireredvad,
}


def assert_begins_close(output: np.ndarray, expected: np.ndarray) -> None:
    """Fail unless all whole blocks are there, and their frames are close."""
    output, expected = output.ravel(), expected.ravel()
    assert len(expected) - 128 < output.size <= len(expected)
    assert_close(output, expected[: output.size], atol=SCALED * np.abs(expected).max())


@pytest.mark.parametrize("name", CHAINS)
def test_the_authors_chain_streams_as_offline(name: str) -> None:
    """Offline on a part, as a stream of pulses, as a session in random blocks, and as one file read back."""
    stored = np.load(shared_path("sound") / f"{name}.npz")
    model = CHAINS[name](shared_path("models"))
    x, expected = stored["in"].astype(np.float32)[None], stored["out"]
    pulsed = model.declutter().pulsify()
    (port,) = pulsed.outputs
    program = pulsed.compile()
    assert_begins_close(stream_whole(program, {"x": x})[port.name], expected)
    session, rng, start, pieces = Session(program), np.random.default_rng(0), 0, []
    while start < x.shape[1]:
        size = int(rng.integers(0, 3000))
        pieces.append(session.push(x[:, start : start + size])[port.name])
        start += size
    pieces.append(session.flush()[port.name])
    axis = port.axis or 0
    assert_begins_close(np.concatenate(pieces, axis), expected)
    part = x[:, :8000]
    offline = model.run({"x": part})[port.name]
    limit = SCALED * np.abs(expected).max()
    assert_close(stream_whole(program, {"x": part})[port.name], offline, atol=limit)
    again = pulse.load(pulsed.to_onnx()).analyse().pulsify().compile()
    assert_close(stream_whole(again, {"x": part})[port.name], offline, atol=limit)
