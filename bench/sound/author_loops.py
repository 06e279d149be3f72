"""Models from audio to audio as their authors run them: numpy before and after, onnxruntime between, hop by hop.

All arithmetic of the loops is in f32, and what does not change is computed before the first hop.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.models.explicit import Explicit
from bench.peers.onnxruntime_peer import OnnxRuntimePeer
from pulse.front.triangles import kaldi_triangles

Floats = NDArray[np.float32]
Step = Callable[[Floats], Floats | None]
"""A hop of samples [hop] to the samples, or the row, that are ready with it; None if nothing is."""

BANDS = 80
"""Mel bands of the voice activity detector's features."""
INT16 = 32768
"""The scale of 16-bit samples, which Kaldi's features expect."""


def _model(path: Path, sample: Floats) -> Callable[[Floats], Floats]:
    """Return a function from inputs to the first output, call after call; states stay in onnxruntime's memory."""
    explicit = Explicit.from_author(path, 1)
    (x,) = explicit.inputs
    peer, name = OnnxRuntimePeer(explicit, {x: sample}), next(iter(explicit.outputs.values()))
    return lambda values: np.asarray(peer.step({x: values})[name], np.float32)


def _hann(size: int) -> NDArray[np.float64]:
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)


def gtcrn(models: Path) -> Step:
    """Return a step: STFT 512/256 with the root of a Hann window, centred; the author's twin; the inverse, 256 late."""
    size, hop = 512, 256
    window = np.sqrt(_hann(size)).astype(np.float32)
    frame, total = np.zeros(size, np.float32), np.zeros(size, np.float32)
    picture = np.zeros((1, size // 2 + 1, 1, 2), np.float32)
    model, has_started = _model(models / "gtcrn_stream.onnx", picture), False

    def step(x: Floats) -> Floats:
        nonlocal has_started
        frame[:-hop] = frame[hop:]
        frame[-hop:] = x
        if not has_started:  # the first frame is around the first sample: its first half mirrors its second
            frame[1:hop] = x[:0:-1]
            has_started = True
        spectrum = np.fft.rfft(frame * window)
        picture[0, :, 0, 0], picture[0, :, 0, 1] = spectrum.real, spectrum.imag
        masked = model(picture)[0, :, 0]
        total[:] += np.fft.irfft(masked[:, 0] + 1j * masked[:, 1]) * window
        ready = total[:hop].copy()
        total[:-hop] = total[hop:]
        total[-hop:] = 0
        return ready

    return step


def dtln(models: Path) -> Step:
    """Return a step: blocks of 512 by 128, a mask for the magnitudes, the phase kept, a second model, overlap-add."""
    size, hop = 512, 128
    block, total = np.zeros(size, np.float32), np.zeros(size, np.float32)
    first = _model(models / "dtln_1.onnx", np.zeros((1, 1, size // 2 + 1), np.float32))
    second = _model(models / "dtln_2.onnx", np.zeros((1, 1, size), np.float32))

    def step(x: Floats) -> Floats:
        block[:-hop] = block[hop:]
        block[-hop:] = x
        spectrum = np.fft.rfft(block)
        mask = first(np.abs(spectrum).astype(np.float32)[None, None])
        frame = second(np.fft.irfft(spectrum * mask[0, 0]).astype(np.float32)[None, None])
        total[:-hop] = total[hop:]
        total[-hop:] = 0
        total[:] += frame[0, 0]
        return total[:hop].copy()

    return step


def fireredvad(models: Path) -> Step:
    """Return a step: Kaldi's filter bank in numpy, the author's statistics, his streaming twin."""
    size, hop, bins = 400, 160, 512
    window = (_hann(size - 1)[np.arange(size) % (size - 1)] ** 0.85).astype(np.float32)  # povey
    bank = np.ascontiguousarray(kaldi_triangles(bins // 2 + 1, BANDS, 16_000, 20, 8_000).T.astype(np.float32))
    floor = np.finfo(np.float32).eps
    recent, frames = np.zeros(3 * hop, np.float32), 0  # the hop in which a frame ends has samples after it
    infer = _voice(models)

    def step(x: Floats) -> Floats | None:
        nonlocal frames
        recent[:-hop] = recent[hop:]
        recent[-hop:] = x * INT16
        frames += 1
        if frames * hop < size:
            return None
        level = recent[:size] - recent[:size].mean()
        level[1:] -= np.float32(0.97) * level[:-1]
        level[0] *= np.float32(0.03)
        power = np.abs(np.fft.rfft(level * window, bins)) ** 2
        return infer(np.log(np.maximum(bank @ power, floor)))

    return step


def fireredvad_kaldi(models: Path) -> Step:
    """Return a step with kaldi-native-fbank, as the author has it. Raises ImportError: it is not installed."""
    knf: Any = import_module("kaldi_native_fbank")
    options = knf.FbankOptions()
    options.frame_opts.dither, options.mel_opts.num_bins = 0, BANDS
    bank, infer, frames_read = knf.OnlineFbank(options), _voice(models), 0

    def step(x: Floats) -> Floats | None:
        nonlocal frames_read
        bank.accept_waveform(16_000, x * INT16)
        if bank.num_frames_ready == frames_read:
            return None
        frames_read += 1
        return infer(bank.get_frame(frames_read - 1))

    return step


def _voice(models: Path) -> Callable[[Floats], Floats]:
    """Return the probability of one row of features."""
    stored = np.load(models.parent / "sound" / "fireredvad_en.npz")
    mean, scale = (stored[f"cmvn_{name}"].astype(np.float32) for name in ("mean", "istd"))
    model = _model(models / "fireredvad_stream_cached.onnx", np.zeros((1, 1, BANDS), np.float32))
    return lambda row: model(((row - mean) * scale)[None, None].astype(np.float32)).ravel()
