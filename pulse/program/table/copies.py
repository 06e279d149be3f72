"""Report the instructions that only move data, with the reason for each."""

from collections.abc import Sequence

from pulse.program.table.cost import cost_of
from pulse.program.table.emitted import EmittedInstruction
from pulse.support.record import record
from pulse.support.wording import count_of

REASONS = {
    "Concat": "parts are put side by side",
    "Pad": "a border is put around it",
    "Tile": "it is repeated",
    "Gather": "positions are picked",
    "Reshape": "its axes are not adjacent in memory",
    "Delay": "its frames are not in the order of the buffer",
    "output": "it would be overwritten: it is in the state",
    "register": "it is the next value of a state",
}
INNERMOST = "the axis that is summed over is not innermost, or needs a border"


@record
class Copies:
    """The copies that one kind of op needs: their number, the bytes that they read and write, and the reason."""

    op: str
    count: int
    bytes: int
    reason: str

    def __str__(self) -> str:
        return f"{self.count:4d} copies for {self.op}, {count_of(self.bytes, 'byte')}: {self.reason}"


def list_copies(rows: Sequence[EmittedInstruction]) -> list[Copies]:
    """Return the copies of a program by the op that needs them, most bytes first."""
    entries: dict[str, tuple[int, int]] = {}
    for row in rows:
        if row.kernel == "copy":
            count, size = entries.get(row.op, (0, 0))
            entries[row.op] = (count + 1, size + cost_of(row).bytes)
    totals = [Copies(op, *numbers, REASONS.get(op, INNERMOST)) for op, numbers in entries.items()]
    return sorted(totals, key=lambda total: -total.bytes)
