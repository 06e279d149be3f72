"""The recordings and pictures of the gallery, made by the built-in models each time the site is built."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sphinx.application import Sphinx

import pulse
from streaming import Session
from streaming.builtin import SAMPLE_RATE_HZ, clean_path, model_path, noisy_path, voice_path

PULSE_FRAMES = 160
WINDOW_SAMPLES = 512
HOP_SAMPLES = 128
MIN_DB, MAX_DB = -90, -10
INK = "#7a8088"
"""Colour of text and axes: legible on white and on black."""
ACCENT = "#2a7de1"

Sound = NDArray[np.float32]


def read(path: Path) -> Sound:
    """Return an audio file as [1, T]."""
    samples, rate_hz = soundfile.read(path, dtype="float32")
    assert rate_hz == SAMPLE_RATE_HZ
    return samples[None]


def streamed_sound(model: Path, sound: Sound) -> Sound:
    """Return the output of a model that gets the sound in pulses."""
    program = pulse.stream(str(model), pulse=PULSE_FRAMES)
    session = Session(program)
    (name,) = (output.name for output in program.outputs)
    parts = [session.push(sound)[name], session.flush()[name]]
    return np.concatenate(parts, axis=1)


def decibels(sound: Sound) -> NDArray[np.float64]:
    """Return the power of short windows in dB, [frequencies, windows]."""
    frames = np.lib.stride_tricks.sliding_window_view(sound[0], WINDOW_SAMPLES)[::HOP_SAMPLES]
    spectra = np.fft.rfft(frames * np.hanning(WINDOW_SAMPLES)) / (WINDOW_SAMPLES / 4)
    return 20 * np.log10(np.abs(spectra) + 1e-6).T


def add_axes(figure: Figure, seconds: float, label: str):
    """Add axes over time, without a frame or a background."""
    axes = figure.subplots()
    axes.set(xlim=(0, seconds), xlabel="seconds", ylabel=label)
    axes.tick_params(colors=INK)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def draw_spectrogram(sound: Sound, path: Path) -> None:
    """Draw frequencies over time."""
    seconds = sound.shape[1] / SAMPLE_RATE_HZ
    figure = Figure(figsize=(8, 2.2), layout="constrained")
    axes = add_axes(figure, seconds, "kHz")
    extent = (0, seconds, 0, SAMPLE_RATE_HZ / 2000)
    axes.imshow(
        decibels(sound), origin="lower", aspect="auto", extent=extent,
        cmap="magma", vmin=MIN_DB, vmax=MAX_DB,
    )  # fmt: skip
    figure.savefig(path, dpi=144, transparent=True)


def draw_probability(sound: Sound, voice: Sound, path: Path) -> None:
    """Draw a waveform, and the probability of speech over it."""
    seconds = sound.shape[1] / SAMPLE_RATE_HZ
    figure = Figure(figsize=(8, 2.2), layout="constrained")
    axes = add_axes(figure, seconds, "probability")
    axes.set_ylim(0, 1)
    level = (
        np.abs(sound[0, : sound.shape[1] // HOP_SAMPLES * HOP_SAMPLES]).reshape(-1, HOP_SAMPLES).max(axis=1)
    )
    times_s = np.arange(level.size) * HOP_SAMPLES / SAMPLE_RATE_HZ
    axes.fill_between(times_s, 0.5 - level / 2, 0.5 + level / 2, color=INK, alpha=0.4, linewidth=0)
    axes.plot(np.arange(voice.shape[1]) * PULSE_FRAMES / SAMPLE_RATE_HZ, voice[0], color=ACCENT)
    figure.savefig(path, dpi=144, transparent=True)


def draw_live_run(path: Path) -> None:
    """Draw a live run in real time, with a file in place of the microphone."""
    with TemporaryDirectory() as folder:
        for source in (model_path(), noisy_path()):
            shutil.copy(source, folder)  # the picture names them
        names = (model_path().name, noisy_path().name)
        call(folder, "run", *names, "out.wav", "--live", "--stats", "live.jsonl")
        call(folder, "report", "live.jsonl", "-o", "live.svg")
        shutil.copy(Path(folder) / "live.svg", path)


def call(folder: str, *words: object) -> None:
    """Run the command ``pulse`` in a folder."""
    program = [sys.executable, "-c", "from streaming.cli import main; main()"]
    result = subprocess.run(
        [*program, *map(str, words)], cwd=folder, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise RuntimeError(f"pulse {words[0]} failed:\n{result.stderr}")


def make(folder: Path) -> None:
    """Write all files of the gallery."""
    folder.mkdir(parents=True, exist_ok=True)
    noisy = read(noisy_path())
    sounds: Mapping[str, Sound] = {
        "noisy": noisy,
        "denoised": streamed_sound(model_path(), noisy),
        "clean": read(clean_path()),
    }
    for name, sound in sounds.items():
        soundfile.write(folder / f"{name}.flac", sound[0], SAMPLE_RATE_HZ)
        draw_spectrogram(sound, folder / f"{name}.png")
    draw_probability(noisy, streamed_sound(voice_path(), noisy), folder / "voice.png")
    draw_live_run(folder / "live.svg")


def make_for_site(app: Sphinx) -> None:
    """Write the files of the gallery next to the pages."""
    make(Path(app.outdir) / "gallery")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension; Sphinx calls it."""
    app.connect("builder-inited", make_for_site)
    return {"parallel_read_safe": True}
