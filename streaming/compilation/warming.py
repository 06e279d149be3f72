"""Compile kernels ahead of their first use, in several processes."""

import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue

from pulse.errors import CompileError, PulseWarning
from pulse.jit.compiled import CompiledFunction
from pulse.jit.entries import ENTRIES
from pulse.jit.registry import KERNEL_PLUGINS, KERNELS
from pulse.jit.storage.cache import cache_location, storage_problem, warn_if_nothing_is_cached
from pulse.program.backends.registry import Prepare
from pulse.program.kernels import families as families
from pulse.program.machine import team as team
from pulse.program.machine.array_step import STEPPING
from pulse.support.collector import collect_rarely
from pulse.support.cores import core_count
from pulse.support.naming import require_name
from pulse.support.plugins import load_plugins
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, duration
from streaming.compilation.child import is_python, python_process, read_answer, reserve_stdout, write_answer
from streaming.native import callback as callback
from streaming.native import gate as gate
from streaming.native import positions as positions
from streaming.native import pulse_loop as pulse_loop
from streaming.native import slots as slots
from streaming.terminal.progress import Progress, progress

REPORTED_COMPILATIONS = 5
"""How many of the slowest compilations the report lists."""
MAX_COMPILED_HERE = 2
"""Maximum number of functions that this process compiles; for more, others are started."""
MICROPHONE_ENTRIES = (
    "pipeline.callback",
    "device.gate",
    "device.shut",
    "pipeline.load_word",
    "pipeline.store_word",
)
"""The entry points that a microphone needs."""
LIVE_ENTRIES = (
    "pipeline.run_pulse",  # takes longest
    "pipeline.pump",
    "pipeline.work",
    "pipeline.call",
    "pipeline.command",
    "pipeline.apply",
    "pipeline.withdraw_command",
    *MICROPHONE_ENTRIES,
)
"""The entry points that live audio needs, besides the kernels of its model."""
EXECUTOR_ENTRIES = tuple(name for name in ENTRIES if name.startswith("slots."))
"""The entry points that an executor needs, besides the kernels of its model."""


@record
class WarmReport(Report):
    """The report of ``warm``.

    folder      the folder of compiled functions
    compiled_s  name -> seconds that it took in its process, longest first
    present     the functions that were already compiled
    jobs        the number of processes
    seconds     the total time in seconds
    """

    folder: Path
    compiled_s: dict[str, float]
    present: tuple[str, ...]
    jobs: int
    seconds: float

    def sections(self) -> list[Section]:
        """Return the folder and the compiled functions, the slowest first."""
        took = [f"{name} {duration(took_s)}" for name, took_s in self.compiled_s.items()]
        text = str(len(took))
        if took:
            ellipsis = " …" if len(took) > REPORTED_COMPILATIONS else ""
            text += f" by {self.jobs} processes: {', '.join(took[:REPORTED_COMPILATIONS])}{ellipsis}"
        pairs = [("folder", str(self.folder)), ("already compiled", str(len(self.present)))]
        return [Pairs([*pairs, ("compiled", text), ("time", duration(self.seconds))])]


def kernel_names() -> list[str]:
    """Return all that is compiled: kernels, those of plugins too, and the machine's entry points."""
    load_plugins(KERNEL_PLUGINS)
    return [*KERNELS, *ENTRIES]


def warm(
    only: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> WarmReport:
    """Compile the functions that are not on the disk yet.

    only      names; all by default
    jobs      the number of processes; by default one for each core that this process may use
    progress  called with the number done and the total to compile
    Raises    CompileError: no such name, or the compiled functions cannot be cached
    """
    start_s = time.perf_counter()
    kernels = kernel_names()
    names = list(dict.fromkeys(kernels if only is None else only))
    for name in names:
        require_name("kernel", name, kernels, CompileError)
    location = cache_location()
    if location.refused:
        raise CompileError(f"{location.refused}: no kernel would be stored for the next time")
    missing = [name for name in names if not is_cached(name)]
    count = min(jobs or core_count(), len(missing))
    seconds_of: dict[str, float] = {}
    if missing and (reason := why_not_cached()):
        raise CompileError(_reason_not_cached(missing[0], reason))
    with closing(_compile_all(missing, count)) as compilations:
        for compiled_count, compiled in enumerate(compilations, 1):
            if compiled.storage_error or not is_cached(compiled.name):
                raise CompileError(
                    _reason_not_cached(compiled.name, compiled.storage_error or "it is missing afterwards")
                )
            seconds_of[compiled.name] = compiled.seconds
            if progress is not None:
                progress(compiled_count, len(missing))
    slowest = dict(sorted(seconds_of.items(), key=lambda item: -item[1]))
    present = tuple(name for name in names if name not in seconds_of)
    return WarmReport(location.path, slowest, present, count, time.perf_counter() - start_s)


def compile_in_parallel(*entries: str) -> Prepare:
    """Compile the kernels of a program in several processes; for ``prepare`` of ``pulse.stream`` and ``compile``.

    A bar on stderr shows it, if stderr is a terminal. Processes begin only where they save time, and never where
    their work cannot be cached; if the disk becomes full meanwhile, this process compiles the rest.

    entries  further entry points that are needed: ``LIVE_ENTRIES``, ``EXECUTOR_ENTRIES``, ``MICROPHONE_ENTRIES``
    """

    def prepare(kernels: Sequence[str]) -> None:
        names = dict.fromkeys([*entries, *(entry.name for entry in STEPPING), *kernels])
        missing = [name for name in names if not is_cached(name)]
        if not missing:
            return
        warn_if_nothing_is_cached()
        with (
            progress("compiling kernels, once on this machine") as advance,
            closing(_compile_each(missing)) as compilations,
        ):
            for count, _ in enumerate(compilations, 1):
                advance(count, len(missing))

    return prepare


def _compile_each(missing: Sequence[str]) -> Generator[str]:
    """Yield each name when it is compiled and on the disk, or at least in this process."""
    ahead = dict.fromkeys(missing)
    if len(missing) > MAX_COMPILED_HERE and core_count() > 1 and is_python() and not why_not_cached():
        with closing(_compile_all(missing, min(core_count(), len(missing)))) as compilations:
            for compiled in compilations:
                if compiled.storage_error:
                    break
                del ahead[compiled.name]
                yield compiled.name
    for name in ahead:
        _compile(name)
        yield name


@record
class _Compiled:
    """The result of a process for a name: the seconds, and the reason if it is not on the disk."""

    name: str
    seconds: float
    storage_error: str | None


def _compile_all(missing: Sequence[str], jobs: int) -> Generator[_Compiled]:
    """Yield each result when it is compiled."""
    here = [name for name in missing if _module_of(name) == "__main__"]  # no other process has it
    yield from map(_compile, here)
    others = [name for name in missing if name not in here]
    if not others:
        return
    free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    def compile_one(name: str) -> _Compiled:
        process = free.get()
        try:
            return _ask(process, name)
        finally:
            free.put(process)

    with ExitStack() as pipes, ThreadPoolExecutor(jobs) as threads, ExitStack() as processes:
        for _ in range(jobs):
            process = pipes.enter_context(begin_process())
            processes.callback(process.kill)  # it is idle by then, or cancelled
            free.put(process)
        futures = [threads.submit(compile_one, name) for name in others]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def begin_process() -> "subprocess.Popen[bytes]":
    """Start a process in ``serve_requests``."""
    return python_process(__name__)


def _ask(process: "subprocess.Popen[bytes]", name: str) -> _Compiled:
    """Let a process compile the function of that name. Raises CompileError: the process has ended."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(f"{_module_of(name)} {name}\n".encode())
    answer = process.stdout.readline()
    if not answer:
        raise CompileError(
            f"the process that compiled {name} ended by itself, which happens if memory is short; use fewer jobs"
        )
    return _Compiled(**read_answer(answer))


def serve_requests() -> None:
    """Run the loop of a compiling process: module and name on stdin, a ``_Compiled`` or an error as JSON on stdout."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends it at once; the parent reports it
    warnings.simplefilter("ignore", PulseWarning)  # the parent looks at the same files
    load_plugins(KERNEL_PLUGINS)
    collect_rarely()  # else 8 % of a compilation is a search for garbage
    answers = reserve_stdout()
    for request in sys.stdin:
        module, _, name = request.rstrip("\n").partition(" ")
        write_answer(answers, partial(_import_and_compile, module, name))


def why_not_cached() -> str | None:
    """Return the reason why compiled functions would not be cached, or None."""
    folder = cache_location().folder
    return storage_problem(folder) if folder else "no folder"


def _reason_not_cached(name: str, reason: str) -> str:
    folder = cache_location().folder
    return f"{folder}: {reason}, so {name} is not cached; free the disk or set PULSE_CACHE to another folder"


def function_of(name: str) -> CompiledFunction:
    """Return the kernel or entry of a name."""
    return KERNELS[name] if name in KERNELS else ENTRIES[name]


def _module_of(name: str) -> str:
    """Return the module that declares the function of a name."""
    return function_of(name).function.__module__


def is_cached(name: str) -> bool:
    return function_of(name).is_cached


def _import_and_compile(module: str, name: str) -> _Compiled:
    import_module(module)
    return _compile(name)


def _compile(name: str) -> _Compiled:
    """Compile the function in this process, or load it."""
    function, start_s = function_of(name), time.perf_counter()
    function.prepare()
    return _Compiled(name, time.perf_counter() - start_s, function.storage_error)
