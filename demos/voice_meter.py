"""When is someone speaking: for each tenth of a second a bar, the longer the more probable.

An event loop, asyncio or trio, takes the probabilities while a thread of its own runs the built-in detector. Ctrl-C
ends. Without a sound card: --file sound.wav.
"""

import argparse
from pathlib import Path

import anyio
import numpy as np

import pulse
from streaming.builtin import SAMPLE_RATE_HZ, voice_path
from streaming.compilation.warming import EXECUTOR_ENTRIES, MICROPHONE_ENTRIES, compile_in_parallel
from streaming.executor import Executor, Microphone
from streaming.live.file_host import FileHost

LINE_FRAMES, LINE_S = 10, 0.1
BAR = 40


async def show(microphone: Microphone, channel: str) -> None:
    """Print a line for every ten frames, and at the end the share of voice."""
    program = pulse.stream(
        voice_path(), pulse=160, prepare=compile_in_parallel(*EXECUTOR_ENTRIES, *MICROPHONE_ENTRIES)
    )
    probabilities, segments = np.zeros(0, np.float32), []
    async with Executor(program, rate_hz=SAMPLE_RATE_HZ) as executor:
        try:
            async for outputs in executor.stream(microphone, channel):
                probabilities = np.concatenate([probabilities, outputs["voice"][0]])
                while len(probabilities) >= LINE_FRAMES:
                    probability = probabilities[:LINE_FRAMES].max()
                    probabilities = probabilities[LINE_FRAMES:]
                    bar, mark = "█" * round(BAR * probability), "voice" if probability > 0.5 else ""
                    print(f"{len(segments) * LINE_S:7.1f} s  {bar:{BAR}}  {mark}".rstrip(), flush=True)
                    segments.append(bool(mark))
        finally:
            took, lost = executor.statistics().total.summary(), microphone.frames_lost
            print(f"voice in {sum(segments)} of {len(segments)} tenths, {lost} frames lost")
            print(f"from block to frames: p50 {took.p50_us / 1e3:.2f} ms, max {took.max_us / 1e3:.2f} ms")


def main() -> None:
    """Open the source and print its voice probability."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mic", metavar="DEVICE", help="number or part of the name, see pulse devices")
    parser.add_argument("--channel", default="mix", help="mix, or the number of one")
    parser.add_argument(
        "--file", type=Path, metavar="SOUND", help="an audio file as if it came from a microphone"
    )
    parser.add_argument("--fast", action="store_true", help="do not wait for the time that the file takes")
    parser.add_argument("--loop", choices=["asyncio", "trio"], default="asyncio")
    arguments = parser.parse_args()
    try:
        host = FileHost(arguments.file, None, None if arguments.fast else 1.0) if arguments.file else None
        anyio.run(show, Microphone(arguments.mic, host=host), arguments.channel, backend=arguments.loop)
    except KeyboardInterrupt:
        print()
    except pulse.PulseError as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main()
