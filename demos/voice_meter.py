"""Who is speaking when: a bar for each tenth of a second, as long as voice is probable, from a microphone or a file.

An event loop, asyncio or trio, takes the probabilities while a thread of its own runs the built-in detector. Ctrl-C
ends. Without a sound card: --file sound.wav.
"""

import argparse
from pathlib import Path

import anyio
import numpy as np

import pulse
from streaming.builtin import SAMPLE_RATE_HZ, voice_path
from streaming.executor import Executor, Microphone, SoundSource
from streaming.live.file_host import FileHost

FRAME_S = 0.01
LINE_FRAMES = 10
BAR = 40


async def show(source: SoundSource, channel: str) -> None:
    """Print a line whenever the frames of one have come."""
    program = pulse.stream(voice_path(), pulse=160)
    heard, lines, voiced = np.zeros(0, np.float32), 0, 0
    async with Executor(program, rate_hz=SAMPLE_RATE_HZ) as executor:
        async for outputs in executor.stream(source, channel):
            heard = np.concatenate([heard, outputs["voice"][0]])
            while len(heard) >= LINE_FRAMES:
                probability, heard = float(heard[:LINE_FRAMES].max()), heard[LINE_FRAMES:]
                mark = "voice" if probability > 0.5 else ""
                bar = "█" * round(BAR * probability)
                print(f"{lines * LINE_FRAMES * FRAME_S:7.1f} s  {bar:{BAR}}  {mark}".rstrip(), flush=True)
                lines, voiced = lines + 1, voiced + bool(mark)
    print(f"voice in {voiced} of {lines} tenths; from arrival to probability {times(executor)}")


def times(executor: Executor) -> str:
    """The latency of all pulses."""
    total = executor.account.total.summary()
    return f"p50 {total.p50_us / 1e3:.2f} ms, max {total.max_us / 1e3:.2f} ms"


def main() -> None:
    """Open the source and show what is heard."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mic", metavar="DEVICE", help="number or part of the name, see pulse devices")
    parser.add_argument("--channel", default="mix", help="mix, or the number of one")
    parser.add_argument("--file", type=Path, metavar="SOUND", help="a sound as if a microphone gave it")
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
