"""A profile of a step: the time of each instruction, measured in the machine, and its cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from pulse.program.machine import machine
from pulse.program.table.cost import Cost, RowNote
from pulse.support.record import record

MAX_ROUNDS = 100
"""Maximum number of rounds, whose median counts; more steps make longer rounds."""

Group = Literal["kernel", "op", "node"]


@record
class InstructionProfile:
    """The time in a step of one instruction, or of several together.

    node, op, kernel  the owner of the instruction; of several, the first one's
    seconds_per_step  without the reading of the clock
    share             the share of the time of all instructions
    cost              bytes and multiply-adds
    instructions      the number of instructions
    parts             the number of parts, on as many threads; of several, the largest
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
        """Gigabytes touched per second."""
        return self._rate(lambda cost: cost.bytes)

    @property
    def giga_multiply_adds_per_s(self) -> float | None:
        """Billions of multiply-adds per second; None if there are none."""
        return self._rate(lambda cost: cost.multiply_adds)

    def _rate(self, count: Callable[[Cost], int]) -> float | None:
        if not count(self.cost) or not self.seconds_per_step:
            return None
        return count(self.cost) / self.seconds_per_step / 1e9

    def join(self, other: "InstructionProfile") -> "InstructionProfile":
        """Return the sum of this profile and another one."""
        return replace(
            self,
            seconds_per_step=self.seconds_per_step + other.seconds_per_step,
            share=self.share + other.share,
            cost=self.cost + other.cost,
            instructions=self.instructions + other.instructions,
            parts=max(self.parts, other.parts),
        )


@record
class Profile:
    """The times of a program's instructions, in order.

    rows        the time of each instruction
    steps       the number of measured steps
    step_s      median time of a whole step without clock readings
    overhead_s  the time that reading the clock adds to a step; not part of any row
    """

    rows: tuple[InstructionProfile, ...]
    steps: int
    step_s: float
    overhead_s: float

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[InstructionProfile]:
        return iter(self.rows)

    def group_by(self, group: Group) -> list[InstructionProfile]:
        """Return one row for all instructions of each kernel, op or node; the most expensive first."""
        totals: dict[str, InstructionProfile] = {}
        for row in self.rows:
            name = getattr(row, group)
            totals[name] = totals[name].join(row) if name in totals else row
        return sorted(totals.values(), key=lambda row: -row.seconds_per_step)


def measure(
    notes: Sequence[RowNote],
    table_address: int,
    bases_address: int,
    steps: int,
    parts: Sequence[int] | None = None,
) -> Profile:
    """Run a linked table ``steps`` times with the clock read after each row, and as often without it.

    parts  the number of parts of each row; None: all run whole

    The times are medians over several rounds, so that other work of the processor in some rounds does not count.
    """
    rounds = min(steps, MAX_ROUNDS)
    steps_per_round, rows = -(-steps // rounds), len(notes)
    ticks, step_ticks = np.zeros((rounds, rows), np.int64), np.zeros(rounds, np.int64)
    machine.run(table_address, rows, bases_address)
    for round_index in range(rounds):
        for _ in range(steps_per_round):
            machine.run_profiled(table_address, rows, bases_address, ticks[round_index].ctypes.data)
        step_ticks[round_index] = sum(
            machine.run_timed(table_address, rows, bases_address) for _ in range(steps_per_round)
        )
    rate, reading_s = machine.ticks_per_second(), machine.seconds_per_reading()
    seconds = np.maximum(np.median(ticks, axis=0) / steps_per_round / rate - reading_s, 0.0)
    total = float(seconds.sum()) or 1.0
    rows_of_profile = [
        InstructionProfile(
            node=row.node,
            op=row.op,
            kernel=row.kernel,
            seconds_per_step=float(time),
            share=float(time) / total,
            cost=row.cost,
            instructions=1,
            parts=count,
        )
        for row, count, time in zip(notes, parts or [1] * rows, seconds)
    ]
    step_s = max(float(np.median(step_ticks)) / steps_per_round / rate - reading_s, 0.0)
    return Profile(tuple(rows_of_profile), rounds * steps_per_round, step_s, rows * reading_s)
