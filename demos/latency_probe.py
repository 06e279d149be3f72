"""Is the delay what the statistics says? What came in and what was played, compared by cross-correlation.

The devices' own latency lies outside what a program can measure; it is shown as they state it. Something must be
audible while it runs. Without a sound card: --file sound.wav.
"""

import argparse
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile

import pulse
from streaming.audio.channels import Samples
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.compilation.warming import LIVE_ENTRIES, compile_in_parallel
from streaming.live import Live, Plan
from streaming.live.file_host import FileHost
from streaming.stats.summary import LiveReport


def later_by(recorded: Samples, played: Samples, longest: int) -> float:
    """Return by how many frames ``played`` [T] is later than ``recorded`` [T]; NaN if they do not match."""
    size = 1 << (len(recorded) + longest).bit_length()
    alike = np.fft.irfft(np.fft.rfft(played, size) * np.fft.rfft(recorded, size).conj())
    peak = int(np.argmax(alike[:longest]))
    before, here, after = alike[[peak - 1, peak, peak + 1]]
    if here < 0.1 * np.linalg.norm(recorded) * np.linalg.norm(played) or not here:
        return np.nan
    return peak + (before - after) / (2 * (before - 2 * here + after))


def main() -> None:
    """Run, record both sides, and compare the measured latency with the reported one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=model_path(), help="of sound at 16 kHz")
    parser.add_argument("--mic", metavar="DEVICE", help="number or part of the name, see pulse devices")
    parser.add_argument("--speaker", metavar="DEVICE", help="the same for what plays")
    parser.add_argument("--file", type=Path, metavar="SOUND", help="an audio file instead of the devices")
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    plan = Plan(SAMPLE_RATE_HZ, arguments.mic, arguments.speaker)
    try:
        host = FileHost(arguments.file) if arguments.file else None
        live = Live(
            pulse.stream(arguments.model, prepare=compile_in_parallel(*LIVE_ENTRIES)), plan, host=host
        )
        with TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("heard.wav", "played.wav")]
            with closing(live.record(*files)), live:
                with suppress(KeyboardInterrupt):
                    live.wait(arguments.seconds)
                statistics = live.statistics()
            (recorded, rate_hz), (played, _) = (soundfile.read(file, always_2d=True) for file in files)
    except pulse.PulseError as error:
        raise SystemExit(f"error: {error}") from error
    except KeyboardInterrupt:  # before it runs
        raise SystemExit(130) from None
    print(LiveReport(live.setup, statistics.summary()))
    frames = statistics.delay.frames
    measured = later_by(np.asarray(recorded.mean(1)), np.asarray(played.mean(1)), 2 * rate_hz)
    print(f"reported   {frames} frames = {frames / rate_hz * 1e3:.2f} ms from device to device")
    off = "agrees" if abs(measured - frames) < 1 else f"{measured - frames:+.1f} frames off"
    print(
        f"measured   {measured:.2f} frames: {'let something sound while it runs' if np.isnan(measured) else off}"
    )
    raise SystemExit(0 if off == "agrees" else 1)


if __name__ == "__main__":
    main()
