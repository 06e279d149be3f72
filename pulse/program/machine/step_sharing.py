"""Whether the steps of a program run on several threads: only while that is faster than on one.

The first and the last row of a table with rows in parts also measure its steps. Shared steps must not take longer than
a step on one thread. If they do, because each core has to fetch what the other one has written, or because other
processes use the cores, the next steps run on one thread; then some are shared again, to see whether it is faster now.
"""

from pulse.jit.entries import callback
from pulse.jit.language.atomics import compare_exchange, load, store
from pulse.jit.language.cpu_registers import tick_count
from pulse.jit.language.foreign import c_signature
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device
from pulse.jit.rows.fields import WORD_BYTES, words_of
from pulse.program.machine.machine import run_row
from pulse.program.machine.team import team_at
from pulse.program.table.table import row_at

MAX_LOST_STEPS = 2
"""The time that shared steps may lose together before others follow on one thread, in steps on one thread."""
FIRST_REST = 16
"""The steps on one thread after the first loss; twice as many after each loss that follows soon."""
MAX_REST = 4096
"""The most steps on one thread before sharing is tried again."""
SOON = 8
"""A loss follows soon if fewer shared steps came before it than this multiple of the latest rest."""
ALONE_SHARE = 16
"""A longer step on one thread changes the estimate by the difference, divided by this number."""


class StepSharing(Struct):
    """The times of a program's steps, in ticks, and what follows from them.

    alone    a step on one thread: about the minimum
    started  when the current step began
    lost     the time that the latest shared steps lost, at least 0
    shared   shared steps since the last rest
    rest     the number of steps that still run on one thread
    resting  the duration of the latest rest, in steps
    """

    alone: int
    started: int
    lost: int
    shared: int
    rest: int
    resting: int


class MeasuredRow(Struct):
    """The head of the first and of the last row of a table, followed by the row itself.

    kernel   address of ``begin_step`` or ``end_step``
    length   the words of the head and of the row
    team     address of the ``TeamBlock``
    sharing  address of the ``StepSharing``
    """

    kernel: int
    length: int
    team: int
    sharing: int


step_sharing_at, measured_row_at = struct_at(StepSharing), struct_at(MeasuredRow)
MEASURED_WORDS = words_of(MeasuredRow)


@device
def count_step(sharing: StepSharing, ticks: int) -> None:
    """Take note of the duration of a step, and decide about the next ones."""
    excess = min(ticks - sharing.alone, sharing.alone)
    if sharing.rest > 0:
        sharing.rest -= 1
        sharing.alone += excess if excess < 0 else 1 + excess // ALONE_SHARE
        return
    sharing.shared += 1
    sharing.lost = max(sharing.lost + excess, 0)
    if sharing.lost > MAX_LOST_STEPS * sharing.alone:
        soon = sharing.shared < SOON * sharing.resting
        sharing.resting = min(2 * sharing.resting, MAX_REST) if soon else FIRST_REST
        sharing.rest, sharing.shared, sharing.lost = sharing.resting, 0, 0


@device
def run_inner(address: int, bases: int) -> None:
    """Run the row after a head."""
    row = address + WORD_BYTES * MEASURED_WORDS
    run_row(row_at(row).kernel, row, bases)


@callback("step_sharing.begin_step", c_signature(None, "i64", "i64"))
def begin_step(address: int, bases: int) -> None:
    """Run the first row; before it, take the team, if it is free, and decide whether rows run in parts."""
    row = measured_row_at(address)
    team, sharing = team_at(row.team), step_sharing_at(row.sharing)
    if compare_exchange(team, "owner", 0, bases):
        store(team, "bases", bases if sharing.rest == 0 else 0)
        sharing.started = tick_count()
    run_inner(address, bases)


@callback("step_sharing.end_step", c_signature(None, "i64", "i64"))
def end_step(address: int, bases: int) -> None:
    """Run the last row, then take note of the duration of the step and free the team, if it was this stream's."""
    run_inner(address, bases)
    row = measured_row_at(address)
    team, sharing = team_at(row.team), step_sharing_at(row.sharing)
    if load(team, "owner") == bases:
        count_step(sharing, tick_count() - sharing.started)
        store(team, "bases", 0)
        store(team, "owner", 0)
