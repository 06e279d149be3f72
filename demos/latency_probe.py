"""Is the delay what the account says? What came in and what was played, compared by cross-correlation.

The devices' own latency lies outside of what a program can measure; it is shown as they state it. Something must be
heard while it runs. Without a sound card: --file sound.wav.
"""

import argparse
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile

import pulse
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.channels import Samples
from streaming.cli.live.summary import final_report
from streaming.live import Behaviour, Live, Plan
from streaming.live.file_host import FileHost

LONGEST_S = 2.0


def lag_frames(heard: Samples, played: Samples, longest: int) -> tuple[float, float]:
    """By how many frames ``played`` [T] is later than ``heard`` [T], and how alike they are then, 0 to 1."""
    size = 1 << (len(heard) + longest).bit_length()
    alike = np.fft.irfft(np.fft.rfft(played, size) * np.fft.rfft(heard, size).conj())
    peak = int(np.argmax(alike[:longest]))
    before, here, after = alike[[peak - 1, peak, peak + 1]]
    whole = np.linalg.norm(heard) * np.linalg.norm(played) + 1e-9
    return peak + (before - after) / (2 * (before - 2 * here + after) - 1e-9), here / whole


def main() -> None:
    """Run, record both sides in a folder that goes away, and set what was measured beside what is reported."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", type=Path, default=model_path(), help="sound to sound, 16 kHz; the built-in denoiser"
    )
    parser.add_argument("--mic", metavar="DEVICE", help="number or part of the name, see pulse devices")
    parser.add_argument("--speaker", metavar="DEVICE", help="the same for what plays")
    parser.add_argument("--file", type=Path, metavar="SOUND", help="a sound in place of the devices")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--engine", choices=["worker", "callback"], default="worker")
    arguments = parser.parse_args()
    try:
        plan = Plan(SAMPLE_RATE_HZ, arguments.mic, arguments.speaker)
        host = FileHost(arguments.file) if arguments.file else None
        live = Live(pulse.stream(arguments.model), plan, Behaviour(arguments.engine), host=host)
        with TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("heard.wav", "played.wav")]
            with closing(live.record(*files)), live:  # from the first frame on: both begin together
                live.wait(arguments.seconds)
                account = live.account()
            (heard, rate_hz), (played, _) = (soundfile.read(file, always_2d=True) for file in files)
    except pulse.PulseError as error:
        raise SystemExit(f"error: {error}") from error
    for name, text in final_report(account, live.setup):
        print(f"{name:10} {text}")
    measured, likeness = lag_frames(heard.mean(1), played[:, 0], round(LONGEST_S * rate_hz))
    if likeness < 0.1:
        raise SystemExit(
            "error: what was played is not like what was heard; is it quiet, or the model no filter?"
        )
    said = account.delay.frames
    print(f"{'reported':10} {said} frames = {said / rate_hz * 1e3:.2f} ms from device to device")
    agrees = abs(measured - said) < 1
    print(
        f"{'measured':10} {measured:.2f} frames: {'agrees' if agrees else f'{measured - said:+.1f} frames off'}"
    )
    raise SystemExit(0 if agrees else 1)


if __name__ == "__main__":
    main()
