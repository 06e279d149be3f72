"""``python -m bench.live.specialised_kernels``: pulses of a live run around specialisation.

They are those before, during and after it. A file plays in real time in place of a microphone. After half of the
seconds, a process begins to compile during the run; when its code is ready, the stream takes it, and the run continues
for the other half.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import pulse
from bench.models import PUBLISHED, catalogue
from bench.models.entry import Entry
from pulse.errors import InputError
from streaming.audio.files import AudioWriter
from streaming.compilation.specialisation import BackgroundSpecialisation
from streaming.latency import LatencyHistogram
from streaming.live import EngineConfig, Live, Plan
from streaming.live.file_host import FileHost
from streaming.realtime import Realtime
from streaming.stats.live_statistics import LiveStatistics

KEYS = ("fastenhancer_t",)
"""The models of a run without arguments."""
RATE_HZ = 16_000
"""The sample rate of the device and the models."""
PHASES = ("before", "while it compiles", "after")
"""The parts of a run."""
COLUMNS = (
    "",
    "s",
    "pulses",
    "compute p50, us",
    "p99.9",
    "output ready after, p50, us",
    "p99.9",
    "silent frames",
)
"""The heads of the table."""
MAX_WAIT_S = 60.0
"""Maximum time that a run waits for the code, in seconds."""


@dataclass(frozen=True)
class Phase:
    """A part of a run: its seconds, the times of its pulses, and the frames that were silent."""

    name: str
    seconds: float
    total: LatencyHistogram
    compute: LatencyHistogram
    frames_silent: int

    @classmethod
    def make(cls, name: str, first: LiveStatistics, last: LiveStatistics) -> "Phase":
        """Return the phase between two sets of statistics."""
        return cls(
            name,
            last.elapsed_s - first.elapsed_s,
            last.total.difference_from(first.total),
            last.compute.difference_from(first.compute),
            last.counters.frames_silent - first.counters.frames_silent,
        )

    def line(self) -> str:
        """Return a row of the table."""
        times = [
            f"{latency.percentile_s(part) * 1e6:.1f}"
            for latency in (self.compute, self.total)
            for part in (50, 99.9)
        ]
        return f"| {self.name} | {self.seconds:.1f} | {self.total.count} | {' | '.join(times)} | {self.frames_silent} |"


def phases(entry: Entry, seconds: float, folder: Path) -> tuple[list[Phase], str]:
    """Run a model; return the phases and the outcome. Raises InputError: the code is not there in time."""
    program = pulse.stream(pulse.load(entry.source(), **entry.arguments), entry.pulse)
    sound = 0.05 * np.random.default_rng(0).standard_normal((round((seconds + MAX_WAIT_S) * RATE_HZ), 1))
    source = folder / "noise.wav"
    with AudioWriter(source, RATE_HZ, 1, "FLOAT") as file:
        file.write(sound.astype(np.float32))
    plan = Plan(RATE_HZ, block_frames=program.pulse)
    with Live(program, plan, EngineConfig(), Realtime(), host=FileHost(source)) as live:
        marks = [live.statistics()]
        time.sleep(seconds / 2)
        marks.append(live.statistics())
        with BackgroundSpecialisation(program) as specialisation:
            if not specialisation.wait(MAX_WAIT_S):
                raise InputError(
                    f"{entry.title}: no specialised kernels after {MAX_WAIT_S} s; use a quiet machine"
                )
            marks.append(live.statistics())
            time.sleep(seconds / 2)
        marks.append(live.statistics())
    return [Phase.make(*phase) for phase in zip(PHASES, marks, marks[1:])], str(specialisation)


def lines(keys: list[str], seconds: float, models: Path) -> Iterator[str]:
    """Yield the table of each model in Markdown."""
    for entry in catalogue(models):
        if entry.key in (keys or KEYS):
            with TemporaryDirectory() as folder:
                measured, outcome = phases(entry, seconds, Path(folder))
            yield f"\n{entry.title}, pulse {entry.pulse}: {outcome}\n"
            yield f"| {' | '.join(COLUMNS)} |"
            yield "| --- |" + " ---: |" * (len(COLUMNS) - 1)
            yield from (phase.line() for phase in measured)


def main() -> None:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("keys", nargs="*", help=f"audio models; {', '.join(KEYS)} without any")
    parser.add_argument(
        "--seconds", type=float, default=24.0, help="of the run, without the wait for the code"
    )
    parser.add_argument("--models", type=Path, default=PUBLISHED, help="folder of published models")
    options = parser.parse_args()
    for line in lines(options.keys, options.seconds, options.models):
        print(line, flush=True)


if __name__ == "__main__":
    main()
