"""The shared models that their authors made streaming: chunk by chunk equal to the author's loop in onnxruntime."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest
import soundfile

from pulse.facts import Array
from pulse.program.whole_stream import stream_whole
from pulse.proof.oracle import pulsed_oracle
from pulse.proof.tolerance import ExpectedOutputs
from streaming.session import Session
from tests.onnxruntime_sessions import open_session
from tests.pulse.chunks import models
from tests.shared import shared_path

CHUNKS = 200
FEW = 25
MAX_DIFFERENCE = 1e-5
"""Tolerance between two runtimes in f32, relative to the largest value of an output."""
HOP = 256


def speech() -> Array:
    """Noisy speech [samples], 16 kHz."""
    return soundfile.read(shared_path("audio") / "noisy_speech_16k.wav", dtype="float32")[0]


def sound(frames: int) -> Callable[[], Array]:
    """[1, samples] for chunks of this many frames."""
    return lambda: np.resize(speech(), (1, frames * CHUNKS))


def blocks(size: int) -> Array:
    """[1, chunks, size]: overlapping pieces of the sound, windowed."""
    windows = np.lib.stride_tricks.sliding_window_view(speech(), size)[::HOP][:CHUNKS]
    return (windows * np.hanning(size)[None])[None].astype(np.float32)


def spectrum() -> Array:
    """Return complex spectra [1, chunks, 257]."""
    return np.fft.rfft(blocks(512))


def magnitudes() -> Array:
    return np.abs(spectrum()).astype(np.float32)


def pictures() -> Array:
    """[1, 257, chunks, 2], real and imaginary."""
    bins = spectrum().transpose(0, 2, 1)
    return np.stack([bins.real, bins.imag], -1).astype(np.float32)


def features() -> Array:
    """[1, frames, 80], 4 frames a chunk: logarithms of 80 bands."""
    windows = np.lib.stride_tricks.sliding_window_view(speech(), 512)[::160]
    power = np.abs(np.fft.rfft(windows * np.hanning(512)))[:, 1:241] ** 2
    bands = np.log(power.reshape(len(power), 80, 3).sum(2) + 1e-6)
    return np.resize(bands, (4 * CHUNKS, 80))[None].astype(np.float32)


Case = tuple[str, Callable[[], Array], str, int, int, dict[str, Any], dict[str, Any]]
CASES: list[Case] = [
    # file, stream, its input, axis, pulse, what is said of it, what onnxruntime is fed beside it
    ("silero_vad_16k_static", sound(512), "input", 1, 512, {"context": {"input": 64}}, {}),
    (
        "silero_vad_16k",
        sound(512),
        "input",
        1,
        512,
        {"context": {"input": 64}, "constants": {"sr": 16000}},
        {"sr": np.array(16000)},
    ),
    ("fastenhancer_t_wav", sound(HOP), "wav_in", 1, HOP, {"context": {"wav_in": HOP}}, {}),
    ("fastenhancer_b_spec", pictures, "spec_in", 2, 1, {}, {}),
    ("gtcrn_stream", pictures, "mix", 2, 1, {}, {}),
    ("dtln_1", magnitudes, "input_2", 1, 1, {}, {}),
    ("dtln_2", lambda: blocks(512), "input_4", 1, 1, {}, {}),
    ("fireredvad_stream_cached", features, "feat", 1, 4, {}, {}),
]


def author(
    file: str, x: Array, name: str, axis: int, frames: int, context: int, states: Mapping[str, str], more: Any
) -> dict[str, Array]:
    """The author's loop in onnxruntime, states zero at first."""
    session = open_session(shared_path("models") / f"{file}.onnx")
    names = [output.name for output in session.get_outputs()]
    shapes = {entry.name: entry.shape for entry in session.get_inputs()}
    carried = {
        state: np.zeros([size if isinstance(size, int) else 1 for size in shapes[state]], np.float32)
        for state in states
    }
    past = np.zeros_like(np.take(x, range(context), axis))
    whole = np.concatenate([past, x], axis)
    steps: list[dict[str, Array]] = []
    for number in range(CHUNKS):
        chunk = np.take(whole, range(number * frames, (number + 1) * frames + context), axis)
        steps.append(dict(zip(names, session.run(None, {name: chunk, **carried, **more}))))
        carried = {state: steps[-1][after] for state, after in states.items()}
    return {output: np.stack([chunk[output] for chunk in steps]) for output in names}


@pytest.mark.parametrize(
    ("file", "make", "name", "axis", "frames", "options", "more"), CASES, ids=[case[0] for case in CASES]
)
def test_chunks_agree_with_those_of_onnxruntime(
    file: str,
    make: Callable[[], Array],
    name: str,
    axis: int,
    frames: int,
    options: dict[str, Any],
    more: dict[str, Any],
) -> None:
    """All outputs of 200 chunks equal onnxruntime's; the first ones equal the author's loop in f64."""
    path, x = shared_path("models") / f"{file}.onnx", make()
    program = models.stream(path, frames, **options)
    assert program.model.chunks is not None
    states = {pair.input: pair.output for pair in program.model.chunks.states}
    by_author = author(file, x, name, axis, frames, options.get("context", {}).get(name, 0), states, more)
    assert {port.name for port in program.outputs} == set(by_author) - set(states.values())
    first = {name: np.take(x, range(FEW * frames), axis)}
    reference = ExpectedOutputs(pulsed_oracle(program.model), first)
    for output, result in stream_whole(program, first).items():
        assert reference.judge(output, result, program.model.port(output).axis).agrees, output
    state = program.spawn()
    for number in range(CHUNKS):
        chunk = np.take(x, range(number * frames, (number + 1) * frames), axis)
        for output, result in state.step(chunk).items():
            expected = by_author[output]
            off = np.abs(result - expected[number]).max()
            assert off <= MAX_DIFFERENCE * np.abs(expected).max(), (output, number, off)


def test_sessions_take_blocks_of_any_size() -> None:
    """Silero on the whole signal, pushed as it comes: a probability for every 512 samples, the last ones included."""
    program = models.stream(shared_path("models") / "silero_vad_16k_static.onnx", context={"input": 64})
    x, rng = speech()[None], np.random.default_rng(0)
    session, at = Session(program), 0
    parts: list[Array] = []
    while at < x.shape[1]:
        step = int(rng.integers(1, 3000))
        parts.append(session.push(x[:, at : at + step])["output"])
        at += step
    parts.append(session.flush()["output"])
    output = np.concatenate(parts, 1)
    padded = np.pad(x, ((0, 0), (64, -x.shape[1] % 512)))
    reference = onnxruntime.InferenceSession(str(shared_path("models") / "silero_vad_16k_static.onnx"))
    carried, expected = np.zeros((2, 1, 128), np.float32), []
    for start in range(0, padded.shape[1] - 64, 512):
        out, carried = reference.run(None, {"input": padded[:, start : start + 576], "state": carried})
        expected.append(out)
    np.testing.assert_allclose(output, np.concatenate(expected, 1), rtol=0, atol=MAX_DIFFERENCE)
    assert output.max() > 0.9
