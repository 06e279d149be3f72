# pyright: reportArgumentType=false, reportCallIssue=false
"""Threads that share the long rows of a step.

A *team* is the thread that steps a stream, and helpers that wait. A row in parts is published as a *turn*: each part
is claimed once, by the thread that it is meant for or by one that has nothing left to do, so a helper that comes late
costs nothing. Then the stepping thread waits for the parts that others claimed. There is no lock: a team that is busy
with another stream is not waited for, and the parts run one after the other. So they do for a while after a helper
was kept from its core.

A helper that has waited for a while sleeps, and is woken by the next turn. In a forked process there are no helpers:
the stepping thread claims all parts.
"""

import os
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import ClassVar

from pulse.errors import InputError
from pulse.jit.atomics import fence, load, replace, store
from pulse.jit.cpu_registers import flush_denormals, pause, restore_denormals, tick_count
from pulse.jit.entries import callback, entry
from pulse.jit.events import NativeEvent, set_event, wait_event
from pulse.jit.fields import WORD, starts_line, words_of
from pulse.jit.foreign import c_signature
from pulse.jit.registry import device
from pulse.jit.structs import Struct, struct_at
from pulse.not_copyable import NotCopyable
from pulse.program.machine.machine import run_row, ticks_per_second
from pulse.program.table.table import row_at
from pulse.wording import spell

PATIENCE_S = 100e-6
"""How long a thread looks for something to do before it sleeps."""
REST = 16
"""How many times as long as a turn that failed a team rests."""
MISSES = 4
"""How many turns in a row the stepping thread runs alone before it takes them for failed."""


class TeamFields(Struct):
    """A team, and the turn that it is at."""

    members: int
    """Address of the members."""
    count: int
    patience: int
    """In ticks."""
    wake: int
    """Descriptor that wakes the stepping thread, and the other end of it, to read."""
    wait: int
    stop: int = starts_line()
    """1: end."""
    busy: int = starts_line()
    """1: a stream has the team."""
    turn: int = starts_line()
    row: int
    """Address of the row in parts."""
    bases: int
    waiting: int = starts_line()
    """1: the stepping thread sleeps."""
    rests_until: int = starts_line()
    """In ticks: up to then all parts run on the stepping thread."""
    missed: int
    """Turns in a row in which no helper took part."""


class Member(Struct):
    """A thread of a team; the first one is the stepping thread."""

    wake: int
    """Descriptor that wakes it, and the other end of it, to read."""
    wait: int
    claimed: int = starts_line()
    """The turn of which the part of this number was claimed last."""
    finished: int = starts_line()
    """The turn of which the part of this number was finished last."""
    sleeping: int = starts_line()
    """1: it sleeps."""


class RowInParts(Struct):
    """What a row in parts begins with; behind it are the rows of the parts, all of one length."""

    kernel: int
    length: int
    team: int
    parts: int
    """At most as many as the team has threads."""
    part_words: int


team_at, members_at, row_in_parts_at = struct_at(TeamFields), struct_at(Member), struct_at(RowInParts)
HEAD_WORDS = words_of(RowInParts)


@device
def run_part(address: int, part: int, bases: int) -> None:
    """One part of a row."""
    at = address + WORD * (HEAD_WORDS + part * row_in_parts_at(address).part_words)
    run_row(row_at(at).kernel, at, bases)


@device
def run_claimed(team: TeamFields, turn: int, address: int, bases: int, own: int) -> int:
    """Run the parts of a turn that no thread has claimed, beginning with the own one; how many there were.

    The stepping thread goes on when all parts are finished. So what is claimed is of its turn, and a thread that
    comes late claims nothing: its turn is not later than what was claimed last.
    """
    members, count, ran = members_at(team.members), team.count, 0
    for i in range(count):
        part = own + i if own + i < count else own + i - count
        member = members[part]
        claimed = load(member, "claimed")
        if claimed < turn and replace(member, "claimed", claimed, turn):
            if part < row_in_parts_at(address).parts:
                run_part(address, part, bases)
            store(member, "finished", turn)
            ran += 1
    return ran


@device
def publish(team: TeamFields, turn: int, address: int, bases: int) -> None:
    """Begin a turn, and wake the helpers that sleep."""
    members = members_at(team.members)
    store(team, "row", address)
    store(team, "bases", bases)
    store(team, "turn", turn)
    fence()
    for part in range(1, team.count):
        member = members[part]
        if load(member, "sleeping") == 1:
            store(member, "sleeping", 0)
            set_event(member.wake)


@device
def wait_for(team: TeamFields, turn: int) -> None:
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
    """Run a row in parts, in the place of a kernel.

    Where a turn takes longer than one thread would, or no helper comes in time again and again, other processes have
    the cores: then the team rests for many times as long, so that little is lost.
    """
    row = row_in_parts_at(address)
    team, start = team_at(row.team), tick_count()
    if start < load(team, "rests_until") or not replace(team, "busy", 0, 1):
        for part in range(row.parts):
            run_part(address, part, bases)
        return
    turn = team.turn + 1
    publish(team, turn, address, bases)
    ran = run_claimed(team, turn, address, bases, 0)
    own = tick_count() - start
    wait_for(team, turn)
    waited = tick_count() - start - own
    team.missed = team.missed + 1 if ran == team.count else 0
    if waited > own * (team.count - 1) or team.missed >= MISSES:
        store(team, "rests_until", tick_count() + REST * max(waited, own))
    store(team, "busy", 0)


@entry("team.help", 2)
def _help(address: int, number: int) -> None:
    """A helper's life: take part in each turn until ``stop`` is set, and sleep if there is none for a while."""
    team = team_at(address)
    own = members_at(team.members)[number]
    mode, seen, since = flush_denormals(), 0, tick_count()
    while load(team, "stop") == 0:
        turn = load(team, "turn")
        if turn != seen:
            seen = turn
            run_claimed(team, turn, load(team, "row"), load(team, "bases"), number)
            fence()
            if load(team, "waiting") == 1:
                set_event(team.wake)
            since = tick_count()
        elif tick_count() - since < team.patience:
            pause()
        else:
            store(own, "sleeping", 1)
            fence()
            if load(team, "turn") == seen and load(team, "stop") == 0:
                wait_event(own.wait)
            store(own, "sleeping", 0)
            since = tick_count()
    restore_denormals(mode)


HELP, RUN_PARTS = _help, run_parts
"""What a team needs."""


class Team(NotCopyable):
    """Threads for the long rows of a program's steps.

    threads  how many, the one that steps included
    Raises   CompileError; PulseError: not on this system
    """

    why_not = "it has threads; spawn a stream, which has its own"
    _known: ClassVar["weakref.WeakValueDictionary[tuple[int, int], Team]"] = weakref.WeakValueDictionary()

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._process = os.getpid()
        fields, members = TeamFields.new(), Member.new(threads)
        events = [NativeEvent() for _ in range(threads)]
        fields.members, fields.count = members.address, threads
        fields.patience = int(PATIENCE_S * ticks_per_second())
        fields.wake, fields.wait = events[0].to_write, events[0].to_read
        for number, event in enumerate(events):
            member = members[number]
            member.wake, member.wait = event.to_write, event.to_read
        self.address = fields.address
        help_others, address = HELP.call, fields.address
        helpers = [
            threading.Thread(
                target=help_others, args=(address, number), name=f"pulse helper {number}", daemon=True
            )
            for number in range(1, threads)
        ]
        for helper in helpers:
            helper.start()
        self.helpers = tuple(helper.native_id or 0 for helper in helpers)
        """The system's numbers of the helpers."""
        weakref.finalize(self, _end, fields, members, events, helpers)

    @property
    def is_here(self) -> bool:
        """Whether the helpers are threads of this process, not of the one that it was forked from."""
        return self._process == os.getpid()

    @staticmethod
    def of(threads: int) -> "Team":
        """The team of this many threads that all streams of the process share. Raises as the class does."""
        key = threads, os.getpid()
        team = Team._known.get(key)
        return Team._known.setdefault(key, Team(threads)) if team is None else team


def _end(
    fields: TeamFields, members: Member, events: Sequence[NativeEvent], helpers: Sequence[threading.Thread]
) -> None:
    """End the helpers, then give back what they use: ``members`` is held until then."""
    fields.stop = 1
    for event in events:
        event.set()
    for helper in helpers:
        helper.join()
    for event in events:
        event.close()


def core_count() -> int:
    """How many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def require_threads(threads: int) -> None:
    """Raise InputError for threads below 1, or more than there are cores."""
    if threads < 1:
        raise InputError(f"{spell('threads', threads)}: a step needs one thread at least")
    if threads > core_count():
        raise InputError(
            f"{spell('threads', threads)}: this process may use {core_count()} cores, and more threads would only wait "
            f"for each other; use {spell('threads', core_count())}"
        )
