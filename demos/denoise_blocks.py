"""Denoise a recording in blocks of random size, as they would come from a network, and compare with offline.

Without arguments: the built-in model and the built-in recording.
"""

import argparse
from pathlib import Path

import numpy as np
import soundfile

import pulse
from streaming import Session
from streaming.builtin import model_path, noisy_path
from streaming.compilation.warming import compile_in_parallel


def main() -> None:
    """Push blocks, collect what is ready, flush, and prove that nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sound", nargs="?", type=Path, default=noisy_path(), help="mono, 16 kHz")
    parser.add_argument("--max-block", type=int, default=1000, help="the largest block, in samples")
    parser.add_argument("--out", type=Path, help="write the result here")
    arguments = parser.parse_args()

    samples, rate_hz = soundfile.read(arguments.sound, dtype="float32", always_2d=True)
    audio = np.ascontiguousarray(samples[:, :1].T)
    typed = pulse.load(model_path()).analyse()
    session = Session(typed.declutter().pulsify(pulse=160).compile(prepare=compile_in_parallel()))
    rng = np.random.default_rng(0)

    pieces, start = [], 0
    while start < audio.shape[1]:
        size = int(rng.integers(0, arguments.max_block + 1))
        pieces.append(session.push(audio[:, start : start + size])["denoised"])
        start += size
    pieces.append(session.flush()["denoised"])

    streamed = np.concatenate(pieces, axis=1)
    offline = typed.run(audio)["denoised"]
    print(f"{len(pieces)} blocks, {session.pulses} pulses, {streamed.shape[1]} samples in and out")
    print(f"largest difference from offline: {np.abs(streamed - offline).max():.2e}")
    if arguments.out:
        soundfile.write(arguments.out, streamed[0], rate_hz)


if __name__ == "__main__":
    main()
