"""From a new process to the first result, compared with the other runtimes in alternation.

Every figure is of processes of their own: import, load, make ready, one step; ``pulse run`` is the whole command. The
processes of all rows take turns. Their CPU time, which other work on the machine disturbs less, is shown too.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pulse
from bench.models import Entry, Explicit
from pulse.jit.levels import NATIVE
from pulse.jit.storage.library import library

STARTED = ("gtcrn", "tcn_1")
"""The models whose start is compared."""
ROUNDS = 9
"""Rounds in which the processes take turns."""
TREE = Path(pulse.__file__).resolve().parents[1]
"""The folder of the packages that this process has imported: its processes import the same ones."""
COLUMNS = ("model, pulse", "runtime", "ms", "ms of CPU")
"""The heads of the table."""

PRINT_TIMES = """
print(time.perf_counter() - started_s, time.process_time())
"""
"""The end of a process that prints its times: those of the clock since its first import, of the CPU since its start."""

NUMPY = """
import time
started_s = time.perf_counter()
import numpy
"""
"""A process that imports numpy alone."""

OURS = """
import json, sys, time
started_s = time.perf_counter()
import numpy, pulse
source, count, told = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
chunking = pulse.Chunking(context=json.loads(sys.argv[4]))
program = pulse.stream(pulse.load(source, chunking=chunking, **told), count)
(port,) = [port for port in program.inputs if port.streams]
program.spawn().step(numpy.zeros(port.shape, numpy.float32))
"""
"""A process that loads, converts and steps a model file."""

PROGRAM = """
import sys, time
started_s = time.perf_counter()
import numpy, pulse
program = pulse.Program.load(sys.argv[1])
(port,) = [port for port in program.inputs if port.streams]
program.spawn().step(numpy.zeros(port.shape, numpy.float32))
"""
"""A process that loads a program file and steps."""

OPTIMISE = """
import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = sys.argv[2]
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""
"""A process that writes the file that onnxruntime makes of a model, so that loading it optimises nothing."""

ONNXRUNTIME = """
import sys, time
started_s = time.perf_counter()
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}
session.run(None, {port.name: numpy.zeros(port.shape, types[port.type]) for port in session.get_inputs()})
"""
"""A process that loads and runs a model in onnxruntime."""

TRACT = """
import sys, time
started_s = time.perf_counter()
import numpy, tract
loaded = tract.onnx().load(sys.argv[1])
shapes = [str(loaded.input_fact(number)).split(",") for number in range(loaded.input_count())]
state = loaded.into_model().into_runnable().spawn_state()
types = {"F32": numpy.float32, "I64": numpy.int64}
state.run([numpy.zeros([int(size) for size in shape[:-1]], types[shape[-1].upper()]) for shape in shapes])
"""
"""A process that loads and runs a model in tract."""


COMMAND = "from streaming.cli import main; main()"
"""A process that is a command of ``pulse``."""


@dataclass(frozen=True)
class Start:
    """How long a runtime takes to give its first result, in seconds: the median of all rounds, cold of one.

    seconds  of the clock, from before the first import on; of a command, all of it
    cpu_s    of the CPU, the start of the interpreter included
    """

    title: str
    runtime: str
    seconds: float
    cpu_s: float


@dataclass(frozen=True)
class _Process:
    """A row: what a process runs, and what is different around it. ``whole``: it is a command, timed from outside."""

    title: str
    runtime: str
    code: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    whole: bool = False

    def run(self, folder: Path) -> tuple[float, float]:
        """Run a command; return the seconds of the clock and of the CPU. Raises CalledProcessError."""
        code = self.code if self.whole else self.code + PRINT_TIMES
        usual = {**os.environ, "PYTHONPATH": str(TREE), **self.environment}
        usual.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles all modules
        before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-c", code, *self.arguments]
        process = subprocess.run(command, cwd=folder, env=usual, capture_output=True, text=True, check=True)
        elapsed, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
        if self.whole:
            return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seconds, cpu_s = map(float, process.stdout.split()[-2:])
        return seconds, cpu_s


def starts(entries: Iterable[Entry], cold: bool = True, rounds: int = ROUNDS) -> list[Start]:
    """Time the import of numpy, ``pulse run`` on the built-in sound, and each entry here and in the others.

    cold  with an empty cache of kernels too, which takes minutes
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            _Process("", "numpy alone", NUMPY),
            _Process("built-in denoiser", "pulse run", COMMAND, ["run"], whole=True),
        ]
        results = list[Start]()
        for entry in entries:
            processes = list(_processes(entry, Path(tempfile.mkdtemp(dir=folder))))
            if cold:
                results.append(_cold(processes[0], folder))
            rows += processes
        return results + _in_turns(rows, folder, rounds)


def _cold(row: _Process, folder: Path) -> Start:
    with tempfile.TemporaryDirectory() as cache:
        empty = {"PULSE_CACHE": cache, "PULSE_LEVEL": NATIVE}
        process = _Process(
            row.title, "pulse, model file, all kernels compiled", row.code, row.arguments, empty
        )
        return Start(process.title, process.runtime, *process.run(folder))


def _in_turns(rows: Sequence[_Process], folder: Path, rounds: int) -> list[Start]:
    """Run one process of each row per round; the order rotates, and a first round is not counted."""
    times: list[list[tuple[float, float]]] = [[] for _ in rows]
    for number in range(rounds + 1):
        for turn in range(len(rows)):
            row = (turn + number) % len(rows)
            seconds = rows[row].run(folder)
            if number:
                times[row].append(seconds)
    return [
        Start(row.title, row.runtime, *(statistics.median(column) for column in zip(*seconds)))
        for row, seconds in zip(rows, times)
    ]


def _processes(entry: Entry, folder: Path) -> Iterator[_Process]:
    """Yield the model file and the program file in this project, and the exported model in the others."""
    path, source = folder / "model.onnx", entry.source()
    path.write_bytes(source.read_bytes() if isinstance(source, Path) else source.SerializeToString())
    arguments = [
        str(path),
        str(entry.pulse),
        json.dumps({name: value for name, value in entry.arguments.items() if name != "chunking"}),
        json.dumps(dict(entry.arguments.get("chunking", pulse.Chunking()).context)),
    ]
    how = "compiled before" if library() is None else "carried"
    yield _Process(entry.name, f"pulse, model file, kernels {how}", OURS, arguments)
    program, saved = entry.program(source), folder / "model.pulse"
    program.save(saved)
    yield _Process(entry.name, "pulse, program file", PROGRAM, [str(saved)])
    model_file = folder / "exported.onnx"
    model_file.write_bytes(Explicit.of(program.model).model.SerializeToString())
    for suffix in ("onnx", "ort"):
        optimised = str(folder / f"optimised.{suffix}")
        subprocess.run(
            [sys.executable, "-c", OPTIMISE, str(model_file), optimised], capture_output=True, check=True
        )
        yield _Process(entry.name, f"onnxruntime, its own optimised .{suffix} file", ONNXRUNTIME, [optimised])
    for runtime, code in (("onnxruntime", ONNXRUNTIME), ("tract", TRACT)):
        yield _Process(entry.name, f"{runtime}, exported", code, [str(model_file)])


def lines(rows: Iterable[Start]) -> Iterator[list[str]]:
    """Yield the figures as text, one row each."""
    for row in rows:
        yield [row.title, row.runtime, f"{row.seconds * 1e3:.0f}", f"{row.cpu_s * 1e3:.0f}"]
