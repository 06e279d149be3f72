"""From a new process to the first result, compared with the other runtimes in alternation.

Every figure is of separate processes: import, load, make ready, one step; ``pulse run`` is the whole command. The
processes of all rows alternate. Their CPU time, which other work on the machine disturbs less, is shown too.
"""

import statistics
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.models import Entry
from bench.performance.start_processes import COMMAND, NUMPY, StartProcess, start_processes
from pulse.jit.levels import NATIVE

STARTED = ("gtcrn", "tcn_1")
"""The models whose start is compared."""
ROUNDS = 9
"""Rounds in which the processes alternate."""
COLUMNS = ("model, pulse", "runtime", "ms", "ms of CPU")
"""The heads of the table."""


@dataclass(frozen=True)
class Start:
    """Time from the start of a runtime to its first result: the median of all rounds; of one if cold.

    seconds  wall-clock time from before the first import; of a command, all of it
    cpu_s    CPU time, the start of the interpreter included
    """

    title: str
    runtime: str
    seconds: float
    cpu_s: float


def starts(entries: Iterable[Entry], cold: bool = True, rounds: int = ROUNDS) -> list[Start]:
    """Time the import of numpy, ``pulse run`` on the built-in recording, and each entry here and in the others.

    cold  whether to measure with an empty cache of kernels too, which takes minutes
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            StartProcess("", "numpy alone", NUMPY),
            StartProcess("built-in denoiser", "pulse run", COMMAND, ["run"], whole=True),
        ]
        results = list[Start]()
        for entry in entries:
            processes = list(start_processes(entry, Path(tempfile.mkdtemp(dir=folder))))
            if cold:
                results.append(_cold(processes[0], folder))
            rows += processes
        return results + _time_alternately(rows, folder, rounds)


def _cold(row: StartProcess, folder: Path) -> Start:
    with tempfile.TemporaryDirectory() as cache:
        empty = {"PULSE_CACHE": cache, "PULSE_LEVEL": NATIVE}
        process = StartProcess(
            row.title, "pulse, model file, all kernels compiled", row.code, row.arguments, empty
        )
        return Start(process.title, process.runtime, *process.run(folder))


def _time_alternately(rows: Sequence[StartProcess], folder: Path, rounds: int) -> list[Start]:
    """Run one process of each row per round; the order rotates, and a first round is not counted."""
    times: list[list[tuple[float, float]]] = [[] for _ in rows]
    for round_index in range(rounds + 1):
        for step in range(len(rows)):
            index = (step + round_index) % len(rows)
            seconds = rows[index].run(folder)
            if round_index:
                times[index].append(seconds)
    return [
        Start(row.title, row.runtime, *(statistics.median(column) for column in zip(*seconds)))
        for row, seconds in zip(rows, times)
    ]


def lines(rows: Iterable[Start]) -> Iterator[list[str]]:
    """Yield the figures as text, one row each."""
    for row in rows:
        yield [row.title, row.runtime, f"{row.seconds * 1e3:.0f}", f"{row.cpu_s * 1e3:.0f}"]
