"""Power by the energy counters of the processor's packages (RAPL), through Linux's powercap."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
"""The folder of Linux's power counters."""
MEASURED_S = 1.0
"""How long the counters are watched; they are updated each millisecond."""


@dataclass(frozen=True)
class Counter:
    """The energy of one package, in microjoules; the counter wraps at ``wraps``."""

    path: Path
    wraps: int

    def read(self) -> int:
        """Return the counter's present value."""
        return int(self.path.read_text())


def counters(folder: Path = POWERCAP) -> list[Counter]:
    """Return a counter for each package; none if the machine or its permissions do not offer any."""
    paths: list[Counter] = []
    for zone in sorted(folder.glob("*:*")):
        try:
            if not (zone / "name").read_text().startswith("package"):
                continue
            counter = Counter(zone / "energy_uj", int((zone / "max_energy_range_uj").read_text()))
            counter.read()
        except OSError:
            continue
        paths.append(counter)
    return paths


def watts(
    call: Callable[[], object],
    seconds: float = MEASURED_S,
    folder: Path = POWERCAP,
    clock: Callable[[], float] = time.perf_counter,
) -> float | None:
    """Return the power of all packages while a call repeats; None without counters.

    clock  returns the time in seconds
    """
    paths = counters(folder)
    if not paths:
        return None
    first = [counter.read() for counter in paths]
    started = clock()
    while clock() - started < seconds:
        call()
    last = [counter.read() for counter in paths]
    elapsed = clock() - started
    joules = sum((after - before) % counter.wraps / 1e6 for counter, before, after in zip(paths, first, last))
    return joules / elapsed
