"""Hear a microphone without its noise: microphone, built-in denoiser, loudspeaker, and the statistics of it.

Use headphones, a loudspeaker feeds back. b: bypass, to compare at equal delay; m: mute; q or Ctrl-C: end.
Without a sound card: --file noisy.wav quiet.wav.
"""

import argparse
from pathlib import Path

import pulse
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.compilation.warming import LIVE_ENTRIES, compile_in_parallel
from streaming.live import Live, Plan
from streaming.live.file_host import FileHost
from streaming.stats.summary import LiveReport
from streaming.terminal.keys import key_presses


def follow(live: Live) -> None:
    """Follow the keys until the run ends."""
    with key_presses() as pressed:
        while not live.wait(0):
            match pressed(0.05):
                case "b":
                    live.control.bypassed = not live.control.bypassed
                case "m":
                    live.control.muted = not live.control.muted
                case "q":
                    return


def main() -> None:
    """Run until the end, then print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mic", metavar="DEVICE", help="number or part of the name, see pulse devices")
    parser.add_argument("--speaker", metavar="DEVICE", help="the same for what plays")
    parser.add_argument(
        "--file", nargs="+", type=Path, metavar="SOUND", help="an audio file instead of the devices [OUT]"
    )
    parser.add_argument("--fast", action="store_true", help="do not wait for the time that the file takes")
    arguments = parser.parse_args()
    source, target = [*(arguments.file or ()), None, None][:2]
    try:
        host = FileHost(source, target, None if arguments.fast else 1.0) if source else None
        program = pulse.stream(model_path(), pulse=160, prepare=compile_in_parallel(*LIVE_ENTRIES))
        live = Live(program, Plan(SAMPLE_RATE_HZ, arguments.mic, arguments.speaker), host=host)
        with live:
            print(f"{live.delay.total_s * 1e3:.1f} ms end to end; b: bypass, m: mute, q: end")
            try:
                follow(live)
            except KeyboardInterrupt:
                print()
            statistics = live.statistics()
    except pulse.PulseError as error:
        raise SystemExit(f"error: {error}") from error
    except KeyboardInterrupt:  # before it runs
        raise SystemExit(130) from None
    print(LiveReport(live.setup, statistics.summary()))


if __name__ == "__main__":
    main()
