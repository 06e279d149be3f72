"""The memory of an executor that streams a long file."""

import struct
import subprocess
import sys
import time
from pathlib import Path

import pulse
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.executor import AudioFileSink, Executor

MINUTES = (1, 60)
"""The lengths of the files whose memory is compared."""


def sparse_file(path: Path, minutes: int) -> None:
    """Create a WAV file of silence that takes no space on the disk: mono, 16 bit."""
    size = 2 * minutes * 60 * SAMPLE_RATE_HZ
    format_chunk = struct.pack("<HHIIHH", 1, 1, SAMPLE_RATE_HZ, 2 * SAMPLE_RATE_HZ, 2, 16)
    head = struct.pack(
        "<4sI4s4sI16s4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, format_chunk, b"data", size
    )
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)


async def stream_long_file(minutes: int, folder: Path) -> None:
    """Stream a file of this many minutes through the denoiser into another file."""
    sparse_file(folder / "in.wav", minutes)
    async with Executor(pulse.stream(model_path(), pulse=160), rate_hz=SAMPLE_RATE_HZ) as executor:
        await executor.run(folder / "in.wav", AudioFileSink(folder / "out.flac"))


def peak_memory(minutes: int) -> tuple[float, float]:
    """Return the peak memory in MiB of a separate process that streams a long file, and its seconds."""
    begun_s = time.perf_counter()
    command = [sys.executable, "-m", "bench.executor", "--long-file", str(minutes)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(process.stdout), time.perf_counter() - begun_s
