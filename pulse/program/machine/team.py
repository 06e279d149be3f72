"""Threads that share the long rows of a step.

A *team* is the thread that steps a stream, and waiting helpers. A row in parts is published as a *turn*: each part
is claimed once, by its own thread or by an idle one, so a late helper costs nothing. Then the stepping thread waits
for the parts that others claimed. There is no lock: a stream owns the team for a step. If another one does, or if it
would not be faster (``step_sharing``), the stepping thread runs the whole rows.

A helper that has waited for a while sleeps until the next turn wakes it. A forked process has no helpers: the
stepping thread claims all parts.
"""

import os
import threading
import weakref
from collections.abc import Sequence
from typing import ClassVar

from pulse.errors import InputError
from pulse.jit.entries import callback, entry
from pulse.jit.events import NativeEvent, set_event, wait_event
from pulse.jit.language.atomics import compare_exchange, fence, load, store
from pulse.jit.language.cpu_registers import flush_denormals, pause, restore_denormals, tick_count
from pulse.jit.language.foreign import c_signature
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device
from pulse.jit.rows.fields import WORD_BYTES, starts_line, words_of
from pulse.program.machine.machine import run_row, ticks_per_second
from pulse.program.table.table import row_at
from pulse.support.cores import core_count
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of, spell

POLLING_S = 100e-6
"""Seconds that a thread polls for work before it sleeps."""


class TeamBlock(Struct):
    """A team and its current turn.

    members      address of the first ``Member``
    count        the number of threads, the stepping one included
    patience     the time that a thread polls before it sleeps, in ticks
    wake, wait   descriptors: to wake the stepping thread, and to wait in it
    stop         1: the helpers end
    owner        the stream that uses the team for a step, as the address of its memories' bases; 0: none
    bases        the same while its rows run in parts, else 0
    row          address of the current row in parts
    turn         the number of the current turn
    waiting      1: the stepping thread sleeps
    """

    members: int
    count: int
    patience: int
    wake: int
    wait: int
    stop: int = starts_line()
    owner: int = starts_line()
    turn: int = starts_line()
    row: int
    bases: int
    waiting: int = starts_line()


class Member(Struct):
    """A thread of a team; the first one is the stepping thread.

    wake, wait  descriptors: to wake it, and to wait in it
    claimed     the last turn in which the part of this number was claimed
    finished    the last turn in which the part of this number was finished
    sleeping    1: it sleeps
    """

    wake: int
    wait: int
    claimed: int = starts_line()
    finished: int = starts_line()
    sleeping: int = starts_line()


class RowInParts(Struct):
    """The head of a row in parts, followed by the whole row and the rows of the parts, all of one length.

    kernel      address of the function that runs the parts
    length      the words of the head and of all rows
    team        address of the ``TeamBlock``
    parts       the number of parts, at most the number of the team's threads
    row_words   the length of the whole row and of each part's row
    """

    kernel: int
    length: int
    team: int
    parts: int
    row_words: int


team_at, members_at, row_in_parts_at = struct_at(TeamBlock), struct_at(Member), struct_at(RowInParts)
HEAD_WORDS = words_of(RowInParts)


@device
def run_nth(address: int, index: int, bases: int) -> None:
    """Run one of the rows in a row in parts: 0, the whole row; or a part, counted from 1."""
    row = address + WORD_BYTES * (HEAD_WORDS + index * row_in_parts_at(address).row_words)
    run_row(row_at(row).kernel, row, bases)


@device
def run_claimed(team: TeamBlock, turn: int, address: int, bases: int, first_part: int) -> None:
    """Run the parts of a turn that no thread has claimed, the thread's own part first.

    The stepping thread continues when all parts are finished. So all claims belong to its turn, and a late thread
    claims nothing, since its turn is not later than the last claim.
    """
    members, count = members_at(team.members), team.count
    for i in range(count):
        part = first_part + i if first_part + i < count else first_part + i - count
        member = members[part]
        claimed = load(member, "claimed")
        if claimed < turn and compare_exchange(member, "claimed", claimed, turn):
            if part < row_in_parts_at(address).parts:
                run_nth(address, part + 1, bases)
            store(member, "finished", turn)


@device
def publish(team: TeamBlock, turn: int, address: int) -> None:
    """Begin a turn, and wake the helpers that sleep."""
    members = members_at(team.members)
    store(team, "row", address)
    store(team, "turn", turn)
    fence()
    for part in range(1, team.count):
        member = members[part]
        if load(member, "sleeping") == 1:
            store(member, "sleeping", 0)
            set_event(member.wake)


@device
def wait_for(team: TeamBlock, turn: int) -> None:
    """Wait until all parts of a turn are finished."""
    members = members_at(team.members)
    for part in range(team.count):
        member, since = members[part], tick_count()
        while load(member, "finished") != turn:
            pause()
            if tick_count() - since > team.patience:
                store(team, "waiting", 1)
                fence()
                if load(member, "finished") != turn:
                    wait_event(team.wait)
                store(team, "waiting", 0)
                since = tick_count()


@callback("team.run_parts", c_signature(None, "i64", "i64"))
def run_parts(address: int, bases: int) -> None:
    """Run a row in parts, with the signature of a kernel; run it whole unless the team shares this stream's step.

    If the others make this thread wait for long, the rest of the step is not shared: they have lost their cores.
    """
    team, start = team_at(row_in_parts_at(address).team), tick_count()
    if load(team, "bases") != bases:
        run_nth(address, 0, bases)
        return
    turn = team.turn + 1
    publish(team, turn, address)
    run_claimed(team, turn, address, bases, 0)
    own_ticks = tick_count() - start
    wait_for(team, turn)
    waited_ticks = tick_count() - start - own_ticks
    if waited_ticks > max(own_ticks * (team.count - 1), team.patience):
        store(team, "bases", 0)


@entry("team.help", 2)
def help_others(address: int, number: int) -> None:
    """Run the loop of a helper: take part in each turn until ``stop`` is set; sleep after a while without a turn."""
    team = team_at(address)
    member = members_at(team.members)[number]
    mode, last_turn, since = flush_denormals(), 0, tick_count()
    while load(team, "stop") == 0:
        turn = load(team, "turn")
        if turn != last_turn:
            last_turn = turn
            run_claimed(team, turn, load(team, "row"), load(team, "bases"), number)
            fence()
            if load(team, "waiting") == 1:
                set_event(team.wake)
            since = tick_count()
        elif tick_count() - since < team.patience:
            pause()
        else:
            store(member, "sleeping", 1)
            fence()
            if load(team, "turn") == last_turn and load(team, "stop") == 0:
                wait_event(member.wait)
            store(member, "sleeping", 0)
            since = tick_count()
    restore_denormals(mode)


class Team(NotCopyable, reason="it has threads; spawn a stream, which has its own"):
    """Threads for the long rows of a program's steps.

    threads  the number of threads, including the one that steps
    Raises   CompileError: its kernels cannot be compiled; PulseError: this system does not support it
    """

    _known: ClassVar["weakref.WeakValueDictionary[tuple[int, int], Team]"] = weakref.WeakValueDictionary()

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._process = os.getpid()
        fields, members = TeamBlock.new(), Member.new(threads)
        events = [NativeEvent() for _ in range(threads)]
        fields.members, fields.count = members.address, threads
        fields.patience = int(POLLING_S * ticks_per_second())
        fields.wake, fields.wait = events[0].to_write, events[0].to_read
        for index, event in enumerate(events):
            member = members[index]
            member.wake, member.wait = event.to_write, event.to_read
        self.address = fields.address
        helpers = [
            threading.Thread(
                target=help_others.call,
                args=(fields.address, number),
                name=f"pulse helper {number}",
                daemon=True,
            )
            for number in range(1, threads)
        ]
        for helper in helpers:
            helper.start()
        self.helpers = tuple(helper.native_id or 0 for helper in helpers)
        """The native ids of the helper threads."""
        weakref.finalize(self, _end, fields, members, events, helpers)

    @property
    def is_here(self) -> bool:
        """Whether the helpers are threads of this process, not of its parent."""
        return self._process == os.getpid()

    @staticmethod
    def of(threads: int) -> "Team":
        """Return the team of ``threads`` threads that all streams of the process share. Raises as the class does."""
        key = threads, os.getpid()
        team = Team._known.get(key)
        return Team._known.setdefault(key, Team(threads)) if team is None else team


def _end(
    fields: TeamBlock, members: Member, events: Sequence[NativeEvent], helpers: Sequence[threading.Thread]
) -> None:
    """End the helpers, then free their events; ``members`` stays alive until then."""
    fields.stop = 1
    for event in events:
        event.set()
    for helper in helpers:
        helper.join()
    for event in events:
        event.close()


def require_threads(threads: int) -> None:
    """Raise InputError for threads below 1, or more than there are cores."""
    if threads < 1:
        raise InputError(f"{spell('threads', threads)}: a step needs at least one thread")
    if threads > core_count():
        raise InputError(
            f"{spell('threads', threads)}: this process may use {count_of(core_count(), 'core')}, and more threads "
            "would only wait "
            f"for each other; use {spell('threads', core_count())}"
        )
