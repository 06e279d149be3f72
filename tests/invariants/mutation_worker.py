"""Reads broken files one by one in a separate process, with little memory and time, and monitors opened files.

Usage: python -m tests.invariants.mutation_worker START STOP [MODELS]  changed files, made of MODELS/*.onnx
       python -m tests.invariants.mutation_worker FOLDER  *.onnx, *.tflite and folders in FOLDER, as they are
       python -m tests.invariants.mutation_worker tensorflow START STOP changed GraphDefs of these numbers
       python -m tests.invariants.mutation_worker nnef START STOP    changed archives of NNEF
       python -m tests.invariants.mutation_worker program START STOP changed program files, which are run
With ``--small`` at the end, a file has ``SMALL_BUDGET`` and not the usual one.
Prints a line of JSON for each file: before it is read, and when it is done.
"""

import faulthandler
import json
import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import pulse
from pulse.errors import PulseError, PulseWarning
from pulse.program.file.stored_program import StoredProgram
from pulse.support.plugins import load_plugins
from pulse.text import dump
from streaming import Session
from tests.invariants.mutations import models_in, mutated_file, small_models
from tests.invariants.nnef_mutations import mutated_archive
from tests.invariants.program_mutations import mutated_program, whole_files
from tests.invariants.tensorflow_mutations import mutated_graph

KINDS = (".onnx", ".tflite")
MODULE = re.compile(r"\.pyc?(\.\d+)?$")
"""A file of Python itself; a number after the name is one that is being written."""
MEMORY = 2 << 30
SMALL_BUDGET = {"nodes": 1 << 11, "seconds": 0.05}
"""Limits of files that take all that they may: a fraction of the usual ones."""
HANG_S = 60
"""Seconds of CPU time after which a file counts as a hang, far above what the budget allows."""


def files() -> Iterator[tuple[str, Path | bytes]]:
    """Name and source of each file that the command line asks for."""
    if sys.argv[1] == "tensorflow":
        yield from map(mutated_graph, range(int(sys.argv[2]), int(sys.argv[3])))
    elif sys.argv[1] == "nnef":
        yield from map(mutated_archive, range(int(sys.argv[2]), int(sys.argv[3])))
    elif sys.argv[1] == "program":
        yield from map(mutated_program, range(int(sys.argv[2]), int(sys.argv[3])))
    elif len(sys.argv) > 2:
        seeds = models_in(Path(sys.argv[3])) if len(sys.argv) > 3 else small_models()
        yield from (mutated_file(number, seeds) for number in range(int(sys.argv[1]), int(sys.argv[2])))
    else:
        paths = [path for path in Path(sys.argv[1]).iterdir() if path.is_dir() or path.suffix in KINDS]
        yield from ((path.name, path) for path in sorted(paths))


def read(source: Path | bytes, budget: Mapping[str, float] | None) -> str:
    """How far it goes: every stage up to pulses, each printed."""
    stage = "load"
    try:
        model = pulse.load(source, budget=budget)
        "\n".join(model.model.lines()).encode()
        stage = "analyse"
        typed = model.analyse()
        dump.text(typed.graph).encode()
        stage = "declutter"
        simplified = typed.declutter()
        simplified.graph.check()
        stage = "pulsify"
        dump.text(simplified.pulsify().graph).encode()
        stage = "pulsed"
    except PulseError as error:
        message = str(error)
        assert message, "an error without words"
        return stage
    return stage


def run_program(data: bytes) -> str:
    """How far a program goes: it is loaded, listed, and run by a stream and by lanes."""
    stage = "load"
    try:
        program = pulse.load(data).compile()
        stage = "tell"
        assert isinstance(program, StoredProgram)
        str(program.notes) + "".join(program.listing())
        stage = "run"
        constants = {
            port.name: np.zeros(port.shape, port.dtype) for port in program.inputs if not port.streams
        }
        session = Session(program, constants=constants) if constants else Session(program)
        pulses = {port.name: np.zeros(port.shape, port.dtype) for port in program.inputs if port.streams}
        for _ in range(3):
            session.push(pulses)
        session.flush()
        lanes = program.spawn_many(3, constants)
        lanes.step({name: np.zeros((3, *array.shape), array.dtype) for name, array in pulses.items()})
    except PulseError as error:
        assert str(error), "an error without words"
        return stage
    return "ran"


def watch(opened: list[str]) -> None:
    """Note every file that is opened from here on, Python's own modules aside."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and not MODULE.search(arguments[0]):
            opened.append(arguments[0])

    sys.addaudithook(hook)


def peak_mib() -> int:
    """The most that this process had in memory; ``ru_maxrss`` would be that of its parent, where that had more."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) >> 10


def say(**fields: Any) -> None:
    """Print a line that the test reads."""
    print(json.dumps(fields), flush=True)


def main() -> None:
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", PulseWarning)
    budget = SMALL_BUDGET if sys.argv[-1] == "--small" else None
    if budget:
        sys.argv.pop()
    read(mutated_file(0, small_models())[1], budget)
    read(mutated_graph(0)[1], budget)
    load_plugins("pulse.operators")
    load_plugins("pulse.kernels")
    programs = sys.argv[1] == "program"
    if programs:
        for _, whole in whole_files():
            assert run_program(whole) == "ran"
    opened: list[str] = []
    watch(opened)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    faulthandler.register(signal.SIGVTALRM, chain=True)
    for name, source in files():
        opened.clear()
        say(begin=name)
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
        failed: Exception | None = None
        stage = "crash"
        try:
            stage = run_program(source) if programs and isinstance(source, bytes) else read(source, budget)
        except Exception as error:
            failed = error
        folder = source.parent.resolve() if isinstance(source, Path) else None
        outside = [
            path for path in opened if folder is None or not Path(path).resolve().is_relative_to(folder)
        ]
        failure = "" if failed is None else "".join(traceback.format_exception(failed))
        spent_s = HANG_S - signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0]
        say(end=name, stage=stage, failure=failure, outside=outside, peak_mib=peak_mib(), spent_s=spent_s)


if __name__ == "__main__":
    main()
