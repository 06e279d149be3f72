"""A speech denoiser, a voice detector and a recording to try them on, so that everything runs without downloads.

They are written by scripts: ``python -m streaming.builtin.assets.denoiser``, ``….voice`` and ``….recordings``.
"""

from pathlib import Path

SAMPLE_RATE_HZ = 16_000
"""The rate of the built-in models and recordings."""
_FOLDER = Path(__file__).parent


def model_path() -> Path:
    """Return the path of the denoiser: an offline ONNX model, ``audio`` [1, T] to ``denoised`` [1, T], f32, 16 kHz."""
    return _FOLDER / "denoise.onnx"


def voice_path() -> Path:
    """Return the path of a voice detector: ``audio`` [1, T] to ``voice`` [1, T/160], probabilities, f32, 16 kHz."""
    return _FOLDER / "voice.onnx"


def noisy_path() -> Path:
    """Return the path of speech-like audio in stationary noise, mono, 16 kHz."""
    return _FOLDER / "noisy.flac"


def clean_path() -> Path:
    """Return the path of the same recording without the noise."""
    return _FOLDER / "clean.flac"
