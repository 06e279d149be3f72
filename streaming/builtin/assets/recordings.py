"""A few seconds of speech-like audio, clean and in noise: ``python -m streaming.builtin.assets.recordings``.

A glottal pulse train and frication noise pass time-varying resonators, one phone after another, with pauses;
then stationary coloured noise is added. Everything is seeded, so each run writes the same samples.
"""

from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from pulse.support.record import record
from streaming.builtin import SAMPLE_RATE_HZ, clean_path, noisy_path

SNR_DB = 3.0
"""The level of speech above the noise."""
PEAK = 0.5
"""Clean speech is scaled to this largest sample."""
LEAD_IN_S = 0.45
"""Noise alone before and after the utterance."""
GLIDE_S = 0.03
"""How long formants move from one phone to the next."""
FORMANT_BANDWIDTHS_HZ = (70.0, 100.0, 150.0)
FRICATION_BANDWIDTH_HZ = 1500.0

DoubleSamples = NDArray[np.float64]


@record
class Phone:
    """One speech sound: its length, the levels of its two sources, and where they resonate."""

    duration_s: float
    voicing: float = 0.0
    frication: float = 0.0
    formants_hz: tuple[float, float, float] = (500.0, 1500.0, 2500.0)
    frication_hz: float = 4000.0


PHONES = {
    " ": Phone(0.34),
    ",": Phone(0.16),
    "a": Phone(0.17, 1.0, formants_hz=(730, 1090, 2440)),
    "e": Phone(0.14, 0.9, formants_hz=(530, 1840, 2480)),
    "i": Phone(0.15, 0.8, formants_hz=(280, 2250, 2950)),
    "o": Phone(0.16, 0.9, formants_hz=(500, 840, 2410)),
    "u": Phone(0.15, 0.8, formants_hz=(310, 870, 2240)),
    "l": Phone(0.07, 0.5, formants_hz=(360, 1200, 2700)),
    "m": Phone(0.08, 0.35, formants_hz=(250, 1000, 2200)),
    "n": Phone(0.08, 0.35, formants_hz=(250, 1600, 2600)),
    "s": Phone(0.11, frication=0.45, frication_hz=5500),
    "x": Phone(0.11, frication=0.5, frication_hz=2800),
    "z": Phone(0.08, 0.3, 0.25, formants_hz=(300, 1700, 2500), frication_hz=5000),
    "-": Phone(0.06),
    "t": Phone(0.025, frication=0.7, frication_hz=4200),
    "k": Phone(0.025, frication=0.6, frication_hz=1900),
}
UTTERANCE = "la-tina so-ke nomi,zaxu-te"


def track(phones: list[Phone], values: list[float]) -> DoubleSamples:
    """Return one value per phone as a curve over all samples, gliding from phone to phone."""
    lengths = [round(phone.duration_s * SAMPLE_RATE_HZ) for phone in phones]
    steps = np.repeat(np.array(values, np.float64), lengths)
    glide = np.hanning(round(GLIDE_S * SAMPLE_RATE_HZ) + 2)[1:-1]
    long_steps = np.pad(steps, (len(glide) // 2, len(glide) - 1 - len(glide) // 2), mode="edge")
    smooth: DoubleSamples = np.convolve(long_steps, glide / glide.sum(), mode="valid").astype(np.float64)
    return smooth


def resonate(x: DoubleSamples, centre_hz: DoubleSamples, bandwidth_hz: float) -> DoubleSamples:
    """Pass ``x`` through a two-pole resonator whose centre moves; gain 1 at 0 Hz."""
    radius = float(np.exp(-np.pi * bandwidth_hz / SAMPLE_RATE_HZ))
    feedback = (2 * radius * np.cos(2 * np.pi * centre_hz / SAMPLE_RATE_HZ)).tolist()
    decay = radius * radius
    y = np.empty_like(x)
    last = before_last = 0.0
    for index, (sample, b) in enumerate(zip(x.tolist(), feedback)):
        value = (1 - b + decay) * sample + b * last - decay * before_last
        y[index] = value
        last, before_last = value, last
    return y


def glottis(f0_hz: DoubleSamples) -> DoubleSamples:
    """Return the derivative of Rosenberg's glottal flow at a moving pitch: opens in 40 %, closes in 16 %."""
    phase = np.cumsum(f0_hz) / SAMPLE_RATE_HZ % 1.0
    opening = 0.5 * (1 - np.cos(np.pi * phase / 0.4))
    closing = np.cos(np.pi / 2 * (phase - 0.4) / 0.16)
    flow = np.select([phase < 0.4, phase < 0.56], [opening, closing], 0.0)
    return np.diff(flow, prepend=0.0)


def coloured_noise(length: int, random: np.random.RandomState) -> DoubleSamples:
    """Return stationary noise that falls by 6 dB an octave above 500 Hz down to a white floor; power 1."""
    spectrum = np.fft.rfft(random.standard_normal(length))
    hz = np.fft.rfftfreq(length, 1 / SAMPLE_RATE_HZ)
    shaped = np.fft.irfft(spectrum * (0.1 + 1 / np.sqrt(1 + (hz / 500) ** 2)), length)
    return shaped / np.sqrt(np.mean(shaped**2))


def speech(random: np.random.RandomState) -> DoubleSamples:
    """Return the clean utterance, mono, peak ``PEAK``."""
    phones = [Phone(LEAD_IN_S), *(PHONES[symbol] for symbol in UTTERANCE), Phone(LEAD_IN_S)]
    voicing = track(phones, [phone.voicing for phone in phones])
    frication = track(phones, [phone.frication for phone in phones])
    length = len(voicing)
    time = np.arange(length) / SAMPLE_RATE_HZ
    f0_hz = 125 - 6 * time + 12 * np.sin(2 * np.pi * 0.9 * time) + 3 * np.sin(2 * np.pi * 4.7 * time)

    voice = voicing * glottis(f0_hz)
    for formant, bandwidth_hz in enumerate(FORMANT_BANDWIDTHS_HZ):
        centre_hz = track(phones, [phone.formants_hz[formant] for phone in phones])
        voice = resonate(voice, centre_hz, bandwidth_hz)
    hiss = frication * random.standard_normal(length)
    hiss = resonate(hiss, track(phones, [phone.frication_hz for phone in phones]), FRICATION_BANDWIDTH_HZ)

    clean = voice / np.abs(voice).max() + 0.4 * hiss / np.abs(hiss).max()
    return PEAK * clean / np.abs(clean).max()


def make_recordings() -> tuple[DoubleSamples, DoubleSamples]:
    """Return clean and noisy, both [samples] at 16 kHz; noisy is clean plus noise at ``SNR_DB``."""
    random = np.random.RandomState(16)
    clean = speech(random)
    noise = coloured_noise(len(clean), random)
    level = np.sqrt(np.mean(clean**2)) * 10 ** (-SNR_DB / 20)
    return clean, clean + level * noise


def write_recording(path: Path, samples: DoubleSamples) -> None:
    """Write mono 16-bit FLAC."""
    soundfile.write(path, samples, SAMPLE_RATE_HZ, subtype="PCM_16", format="FLAC")


def main() -> None:
    """Write the clean and the noisy recording next to this file."""
    clean, noisy = make_recordings()
    for path, samples in ((clean_path(), clean), (noisy_path(), noisy)):
        write_recording(path, samples)
        print(f"{path.name}: {len(samples) / SAMPLE_RATE_HZ:.2f} s, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
