"""Kernels compiled ahead of their first use, by several processes at once."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path

from pulse.errors import CompileError
from pulse.plugins import load_plugins
from pulse.program import machine
from pulse.program.kernels import families as families
from pulse.program.kernels.cache import cache_location
from pulse.program.kernels.entries import ENTRIES
from pulse.program.kernels.registry import KERNELS
from pulse.program.lowering import GROUP
from streaming.native import callback as callback
from streaming.native import gate as gate
from streaming.native import line as line
from streaming.native import positions as positions
from streaming.native import slots as slots

FEW = 2
"""Functions for which starting processes is not worth it."""


@dataclass(frozen=True)
class Warmed:
    """What ``warm`` found and did.

    folder    where compiled functions are kept
    compiled  name -> seconds that it took in its process, the longest first
    present   what was there
    jobs      how many processes compiled
    """

    folder: Path
    compiled: dict[str, float]
    present: tuple[str, ...]
    jobs: int


def names() -> list[str]:
    """All that is compiled: kernels, those of plugins too, and the machine's entry points."""
    load_plugins(GROUP)
    return [*KERNELS, *ENTRIES]


def warm(
    only: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Warmed:
    """Compile what is not on the disk yet.

    only      names; all by default
    jobs      processes at once; one for each core by default
    progress  called with how many are done and how many there are to compile
    Raises    CompileError: no such name, or the compiled functions cannot be kept
    """
    known = names()
    wanted = list(dict.fromkeys(known if only is None else only))
    if unknown := [name for name in wanted if name not in known]:
        raise CompileError(f"nothing to compile is named {', '.join(unknown)}; there are {', '.join(known)}")
    location = cache_location()
    if location.refused is not None:
        raise CompileError(
            f"{location.refused}: cannot be written, so no kernel would be there next time; "
            "set PULSE_CACHE to a folder that can"
        )
    missing = [name for name in wanted if not _kept(name)]
    count = min(jobs or os.cpu_count() or 1, len(missing))
    compiled: dict[str, float] = {}
    for done, (name, seconds) in enumerate(_compiled(missing, count), 1):
        compiled[name] = seconds
        if progress is not None:
            progress(done, len(missing))
    if lost := [name for name in compiled if not _kept(name)]:
        raise CompileError(
            f"{location.path} does not keep {', '.join(lost)}: see the warnings above, free the disk or set "
            "PULSE_CACHE to another folder"
        )
    slowest = dict(sorted(compiled.items(), key=lambda item: -item[1]))
    return Warmed(location.path, slowest, tuple(name for name in wanted if name not in compiled), count)


def warm_needed(kernels: Sequence[str], progress: Callable[[int, int], None] | None = None) -> None:
    """Compile what a program needs and the disk does not have in several processes, if that saves time."""
    if (os.cpu_count() or 1) == 1 or cache_location().kind == "temporary":
        return
    needed = [*kernels, machine.RUN.name]
    if sum(not _kept(name) for name in needed) > FEW:
        warm(needed, progress=progress)


def _kept(name: str) -> bool:
    return KERNELS[name].kept if name in KERNELS else ENTRIES[name].kept


def _compiled(missing: Sequence[str], jobs: int) -> Iterator[tuple[str, float]]:
    """Each name when it is compiled, with its seconds."""
    if not missing:
        return
    before = set(active_children())
    executor = ProcessPoolExecutor(jobs, get_context("spawn"), _begin)
    try:
        for future in as_completed([executor.submit(_compile, name) for name in missing]):
            yield future.result()
    except BrokenProcessPool as error:
        raise CompileError(
            f"a process that compiled ended by itself, which happens where memory is short: {error}; use fewer jobs"
        ) from error
    except (KeyboardInterrupt, SystemExit):
        for process in set(active_children()) - before:
            process.terminate()  # what it compiles may take many seconds
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _begin() -> None:
    """An interrupt ends a process at once; the one that waits for it says so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    load_plugins(GROUP)


def _compile(name: str) -> tuple[str, float]:
    started = time.perf_counter()
    if name in KERNELS:
        _ = KERNELS[name].compiled
    else:
        ENTRIES[name].prepare()
    return name, time.perf_counter() - started
