"""The authors' processing around published models, in numpy and onnxruntime."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import pulse
from pulse import front
from tests.onnxruntime_sessions import open_session
from tests.pulse.chunks.models import Array
from tests.pulse.front.tensorflow_spectra import cepstrum, powers
from tests.pulse.tflite.litert import calls, scales
from tests.shared import shared_path

SIZE, HOP = 512, 256
"""Samples of a frame, and from one to the next, of the spectra here."""
HANN = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SIZE) / SIZE)
RATE_HZ = 16_000


def stored_pair(name: str) -> tuple[Array, Array]:
    """The input and the output of an author's own chain, both in one axis."""
    stored = np.load(shared_path(f"sound/{name}.npz"))
    assert int(stored["rate"]) == RATE_HZ
    return stored["in"].ravel().astype(np.float32), stored["out"].ravel()


def speech() -> Array:
    """Noisy speech, no whole number of frames or chunks."""
    return stored_pair("gtcrn_center")[0][:70_123]


def session(file: str) -> Any:
    """A shared model in onnxruntime, on one thread."""
    return open_session(shared_path("models") / file)


def call_chunks(
    file: str, chunks: Sequence[Array], states: Mapping[str, str], more: Mapping[str, Array] | None = None
) -> list[Array]:
    """The first output of each call; the first input is the chunk, states are zeros at first."""
    model = session(file)
    names = [output.name for output in model.get_outputs()]
    first, shapes = model.get_inputs()[0].name, {port.name: port.shape for port in model.get_inputs()}
    carried = {
        state: np.zeros([size if isinstance(size, int) else 1 for size in shapes[state]], np.float32)
        for state in states
    }
    outputs: list[Array] = []
    for chunk in chunks:
        results = dict(zip(names, model.run(None, {first: chunk, **carried, **(more or {})})))
        outputs.append(results[names[0]])
        carried = {state: results[after] for state, after in states.items()}
    return outputs


def blocks(x: Array, context: int, new: int, more: int = 0) -> list[Array]:
    """Chunks of new samples after those that came before, zeros at first; zeros fill the last, and ``more`` chunks."""
    whole = np.pad(x, (context, -len(x) % new + more * new))
    return [whole[None, start : start + context + new] for start in range(0, len(whole) - context, new)]


def stft(x: Array, window: Array, pad_mode: Any) -> Array:
    """Centred, as [1, F, frames, 2]."""
    whole = np.pad(x.astype(np.float64), SIZE // 2, mode=pad_mode)
    spectrum = np.fft.rfft(np.lib.stride_tricks.sliding_window_view(whole, SIZE)[::HOP] * window)
    return np.stack([spectrum.real, spectrum.imag], -1).transpose(1, 0, 2)[None].astype(np.float32)


def istft(spectrum: Array, window: Array, frames: int) -> Array:
    """The inverse: added, divided by the squares of the windows, ``frames`` samples; zeros where no frame reaches."""
    parts = spectrum[0].astype(np.float64).transpose(1, 0, 2)
    sounds = np.fft.irfft(parts[..., 0] + 1j * parts[..., 1]) * window
    total, weight = (np.zeros(max((len(sounds) - 1) * HOP + SIZE, frames + SIZE)) for _ in range(2))
    for number, frame in enumerate(sounds):
        total[number * HOP :][:SIZE] += frame
        weight[number * HOP :][:SIZE] += window**2
    inside = slice(SIZE // 2, SIZE // 2 + frames)
    return np.divide(total[inside], weight[inside], out=np.zeros(frames), where=weight[inside] > 0)


def gtcrn(x: Array) -> Array:
    """The offline model between a centred STFT and its inverse."""
    window = np.sqrt(HANN)
    (enhanced,) = session("gtcrn_offline.onnx").run(None, {"mix": stft(x, window, "reflect")})
    return istft(enhanced, window, len(x))


def fastenhancer_b(x: Array) -> Array:
    """Frame by frame, between the transform that its sibling has inside."""
    spectrum = stft(x, HANN, "constant")
    frames = np.split(spectrum, spectrum.shape[2], 2)
    spectra = call_chunks(
        "fastenhancer_b_spec.onnx", frames, {f"cache_in_{n}": f"cache_out_{n}" for n in range(3)}
    )
    return istft(np.concatenate(spectra, 2), HANN, len(x)).astype(np.float32)


def fastenhancer_t(x: Array) -> Array:
    """Chunk by chunk, and one more, whose sound is the end; the first 256 samples are dropped."""
    chunks = blocks(x, HOP, HOP, more=1)
    chunks_out = call_chunks(
        "fastenhancer_t_wav.onnx", chunks, {f"cache_in_{n}": f"cache_out_{n}" for n in range(3)}
    )
    return np.concatenate(chunks_out, 1)[0, HOP:][: len(x)]


def silero(x: Array) -> Array:
    """Chunks of 512, each preceded by 64 samples of the previous one."""
    probabilities = call_chunks(
        "silero_vad_16k.onnx", blocks(x, 64, 512), {"state": "stateN"}, {"sr": np.array(RATE_HZ)}
    )
    return np.concatenate(probabilities)[:, 0]


def swift_f0(x: Array) -> Array:
    """The pitch, of the whole recording at once."""
    return session("swift_f0.onnx").run(["pitch_hz"], {"input_audio": x[None]})[0].ravel()


def speech_commands(name: str, stride: int, frames: int, new: int) -> tuple[Array, Array]:
    """The sound of a shared graph, and its words for each second; silence is before the first, zeros of features."""
    stored = np.load(shared_path("tensorflow") / f"{name}.npz")
    x = stored["in/decoded_sample_data"].ravel()
    features = cepstrum(powers(x[None], 640, stride), RATE_HZ, 40, 10, 20.0, 4000.0)
    whole = np.pad(features, ((frames - new, -len(features) % new), (0, 0))).astype(np.float32)
    network = pulse.load(
        shared_path("tensorflow") / f"{name}.pb", {"Mfcc": f"1,{frames},10,f32"}, outputs=["labels_softmax"]
    )
    run = network.model.analyse().run
    words = [
        run({"Mfcc": whole[None, start : start + frames]})["labels_softmax"][0]
        for start in range(0, len(whole) - frames + 1, new)
    ]
    assert np.abs(words[-1] - stored["out/labels_softmax"][0]).max() < 1e-5
    return x, np.stack(words)


def wake_word(name: str) -> tuple[Array, Array]:
    """Noisy speech, and the probabilities that LiteRT gives for three frames of features in each call."""
    x = speech()[: 480 + 160 * (3 * 120 - 1)]
    features = front.micro_frontend().run({"x": x[None]})["features"]
    data = (shared_path("tflite") / f"{name}.tflite").read_bytes()
    (port,), (quantization,) = scales(data)
    steps = np.rint(features * (np.float32(1) / np.float32(port.scale))) + port.zero
    codes = np.clip(steps, -128, 127).astype(np.int8)
    results = calls(data, [[codes[:, start : start + 3]] for start in range(0, codes.shape[1], 3)])
    return x, np.array(
        [(float(y[0, 0]) - quantization.zero) * quantization.scale for (y,) in results], np.float32
    )


Reference = Callable[[], tuple[Array, Array]]
"""Sound [T] at 16 kHz, and what becomes of it, samples or values [frames]."""


def of_speech(chain: Callable[[Array], Array]) -> Reference:
    return lambda: (speech(), chain(speech()))


REFERENCES: Mapping[str, Reference] = {
    "gtcrn.toml": lambda: stored_pair("gtcrn_center"),
    "gtcrn_stream.toml": lambda: stored_pair("gtcrn_center"),
    "dtln.toml": lambda: stored_pair("dtln_blocks"),
    "dtln_tflite.toml": lambda: stored_pair("dtln_blocks"),
    "dtln_saved_model.toml": lambda: stored_pair("dtln_blocks"),
    "kws_DS_CNN_S.toml": lambda: speech_commands("kws_DS_CNN_S", 320, 49, 7),
    "kws_GRU_S.toml": lambda: speech_commands("kws_GRU_S", 640, 25, 5),
    "fireredvad.toml": lambda: stored_pair("fireredvad_en"),
    "fireredvad_cached.toml": lambda: stored_pair("fireredvad_en"),
    "fastenhancer_b.toml": of_speech(fastenhancer_b),
    "fastenhancer_t.toml": of_speech(fastenhancer_t),
    "silero.toml": of_speech(silero),
    "silero_static.toml": of_speech(silero),
    "clean_vad.toml": of_speech(lambda x: silero(gtcrn(x).astype(np.float32))),
    "okay_nabu.toml": lambda: wake_word("okay_nabu_v2"),
    "swift_f0.toml": of_speech(swift_f0),
}
"""Recipe of the page -> its reference."""
VALUES = {
    name for name in REFERENCES if any(part in name for part in ("vad", "silero", "swift", "kws", "nabu"))
}
"""Those that end in values for each frame."""
