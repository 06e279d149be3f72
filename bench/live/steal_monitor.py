"""Steal time: how long no processor of the machine ran at all, measured by threads that nothing can interrupt.

On a shared machine another guest takes processors away, and whatever runs then is late. A process of the highest
real-time priority sleeps half a millisecond at a time on each processor; where it wakes up late, nothing of this system
ran there. ``python -m bench.live.steal_monitor CPU`` is one of them; it prints the stolen time when it is terminated.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

PRIORITY = 98
"""Above everything that is measured; the kernel keeps 99 for itself."""
SLEEP_NS = 500_000
"""Nanoseconds that a thread sleeps between two readings of the clock."""
MAX_TIMER_DELAY_NS = 200_000
"""Nanoseconds that a timer may be late on a machine without steal time."""
READY_TIMEOUT_S = 10.0
"""A process that has not reported after this many seconds is an error."""

Span: TypeAlias = tuple[int, int]
"""From and until, in ns of ``time.monotonic_ns``."""


@dataclass
class StolenTime:
    """The stolen time, known when its context has ended.

    spans  int64 [n, 2]: ns in which one processor or more did not run, in order, none touching another;
           None: this system has no such priority, or not for this user, so nothing was observed
    """

    spans: NDArray[np.int64] | None = None

    @property
    def longest_ns(self) -> int:
        """The longest contiguous stolen time."""
        if self.spans is None or not len(self.spans):
            return 0
        return int((self.spans[:, 1] - self.spans[:, 0]).max())

    def taken_ns(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the stolen part of each duration in ns.

        times_ns  int64 [n, 2]: from and until
        Returns   int64 [n]
        """
        if self.spans is None or not len(self.spans):
            return np.zeros(len(times_ns), np.int64)
        origin = self.spans[0, 0]
        edges = (self.spans - origin).ravel()
        lengths = np.diff(self.spans, axis=1).ravel()
        so_far = np.stack([np.cumsum(lengths) - lengths, np.cumsum(lengths)], axis=1).ravel()
        return np.diff(np.interp(times_ns - origin, edges, so_far), axis=1).ravel().astype(np.int64)


def merge_spans(spans: Iterable[Span]) -> NDArray[np.int64]:
    """Merge overlapping spans. Returns int64 [n, 2]."""
    merged = list[list[int]]()
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return np.array(merged, np.int64).reshape(-1, 2)


@contextmanager
def monitor_steal_time() -> Iterator[StolenTime]:
    """Monitor every processor that this process may use, within this context."""
    stolen = StolenTime()
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(cpu)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for cpu in (sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setscheduler") else ())
    ]
    try:
        watching = bool(processes) and all(_first_line(process) == "ready" for process in processes)
        yield stolen
    finally:
        for process in processes:
            process.terminate()
        texts = [process.communicate(timeout=READY_TIMEOUT_S)[0] for process in processes]
    if watching:
        stolen.spans = merge_spans((begin, end) for text in texts for begin, end in json.loads(text))


def _first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def watch_cpu(cpu: int) -> list[Span]:
    """Sleep and wake up on a processor until SIGTERM, and report when it did not run.

    Raises PermissionError: no right to real-time priority
    """
    ended = list[int]()
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    gc.disable()
    print("ready", flush=True)
    spans = list[Span]()
    last_ns = time.monotonic_ns()
    while not ended:
        time.sleep(SLEEP_NS / 1e9)
        now = time.monotonic_ns()
        if now - last_ns > SLEEP_NS + MAX_TIMER_DELAY_NS:
            spans.append((last_ns + SLEEP_NS, now))
        last_ns = now
    return spans


if __name__ == "__main__":
    print(json.dumps(watch_cpu(int(sys.argv[1]))))
