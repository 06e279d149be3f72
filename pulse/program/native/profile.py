"""A profile of a step: the time of each instruction, measured inside of the machine, beside its cost."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np

from pulse.program.machine import machine
from pulse.program.table.cost import Cost, RowNote
from pulse.record import record

MOST_ROUNDS = 100

Group = Literal["kernel", "op", "node"]


@record
class ProfileRow:
    """What one instruction takes in a step, or several together.

    node, op, kernel  whom it belongs to; the first one's where it stands for several
    seconds_per_step  the reading of the clock not included
    share             of the time of all instructions
    cost              bytes and multiply-adds
    instructions      how many these are
    parts             in how many parts it runs, on as many threads; the most of several
    """

    node: str
    op: str
    kernel: str
    seconds_per_step: float
    share: float
    cost: Cost
    instructions: int = 1
    parts: int = 1

    @property
    def gigabytes_per_s(self) -> float | None:
        """Bytes touched a second."""
        return self._rate(lambda cost: cost.bytes)

    @property
    def giga_multiply_adds_per_s(self) -> float | None:
        """Multiply-adds a second; None if there are none."""
        return self._rate(lambda cost: cost.multiply_adds)

    def _rate(self, count: Callable[[Cost], int]) -> float | None:
        if not count(self.cost) or not self.seconds_per_step:
            return None
        return count(self.cost) / self.seconds_per_step / 1e9

    def join(self, other: "ProfileRow") -> "ProfileRow":
        """The sum of two rows."""
        return ProfileRow(
            self.node,
            self.op,
            self.kernel,
            self.seconds_per_step + other.seconds_per_step,
            self.share + other.share,
            self.cost + other.cost,
            self.instructions + other.instructions,
            max(self.parts, other.parts),
        )


@record
class Profile:
    """The instructions of a program, in their order.

    steps       over how many the times are averaged
    step_s      a whole step of the machine without any clock read, the median
    overhead_s  what reading the clock adds to a step; it is in no row
    """

    rows: tuple[ProfileRow, ...]
    steps: int
    step_s: float
    overhead_s: float

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ProfileRow]:
        return iter(self.rows)

    def by(self, group: Group) -> list[ProfileRow]:
        """One row for all instructions of a kernel, an op or a node; the most expensive first."""
        together: dict[str, ProfileRow] = {}
        for row in self.rows:
            name = getattr(row, group)
            together[name] = together[name].join(row) if name in together else row
        return sorted(together.values(), key=lambda row: -row.seconds_per_step)


def measure(
    notes: Sequence[RowNote],
    table_address: int,
    bases_address: int,
    steps: int,
    parts: Sequence[int] | None = None,
) -> Profile:
    """Run a linked table ``steps`` times with the clock read after each row, and as often without.

    parts  in how many each row runs; None: all run whole

    The times are the medians of rounds, so that what else the processor did in some of them is left out.
    """
    rounds = min(steps, MOST_ROUNDS)
    each, rows = -(-steps // rounds), len(notes)
    ticks, whole = np.zeros((rounds, rows), np.int64), np.zeros(rounds, np.int64)
    machine.run(table_address, rows, bases_address)
    for number in range(rounds):
        for _ in range(each):
            machine.run_profiled(table_address, rows, bases_address, ticks[number].ctypes.data)
        whole[number] = sum(machine.run_timed(table_address, rows, bases_address) for _ in range(each))
    rate, reading_s = machine.ticks_per_second(), machine.seconds_per_reading()
    seconds = np.maximum(np.median(ticks, axis=0) / each / rate - reading_s, 0.0)
    total = float(seconds.sum()) or 1.0
    rows_of_profile = [
        ProfileRow(row.node, row.op, row.kernel, float(time), float(time) / total, row.cost, 1, count)
        for row, count, time in zip(notes, parts or [1] * rows, seconds)
    ]
    step_s = max(float(np.median(whole)) / each / rate - reading_s, 0.0)
    return Profile(tuple(rows_of_profile), rounds * each, step_s, rows * reading_s)
