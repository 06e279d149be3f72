"""Steps are shared among threads while that is faster than one thread."""

from itertools import pairwise

import pytest

import pulse
from bench.models import tcn
from pulse.program.machine import step_sharing, team, thread_cuts
from pulse.program.machine.step_sharing import StepSharing
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.native.native_program import NativeProgram
from tests.noise import normal_noise


def step_times(sharing: StepSharing, *groups: tuple[int, int]) -> list[int]:
    """Count groups of steps (number, ticks); return the steps that then still run on one thread, after each group."""
    rests: list[int] = []
    for count, ticks in groups:
        for _ in range(count):
            step_sharing.count_step(sharing, ticks)
        rests.append(sharing.rest)
    return rests


def test_steps_run_alone_after_shared_ones_have_lost_two() -> None:
    """Steps run on one thread then. A single long step says nothing: another process may have taken any core."""
    sharing = StepSharing.new()
    sharing.alone = 1000
    assert step_times(sharing, (1, 9000), (4, 600), (2, 2000), (1, 1001)) == [0, 0, 0, 16]
    assert step_times(sharing, (15, 1000), (1, 1000), (100, 1020), (1, 1001)) == [1, 0, 0, 32]
    step_times(sharing, (32, 1000))
    assert step_times(sharing, (256, 1000), (3, 2000)) == [0, 16]  # the loss before was long ago


def test_a_step_on_one_thread_is_estimated_by_its_minimum() -> None:
    sharing = StepSharing.new()
    sharing.alone, sharing.rest = 1000, 100
    estimates: list[int] = []
    for ticks in (900, 1060, 90_000, 500, 500):
        step_sharing.count_step(sharing, ticks)
        estimates.append(sharing.alone)
    assert estimates == [900, 911, 968, 500, 501]
    step_times(sharing, (95, 600))
    assert sharing.rest == 0
    assert 590 < sharing.alone < 602  # a model that takes longer now


def test_rests_have_a_longest_duration() -> None:
    sharing, durations = StepSharing.new(), list[int]()
    sharing.alone = 1000
    for _ in range(12):
        step_times(sharing, (3, 2000))
        durations.append(sharing.rest)
        step_times(sharing, (sharing.rest, 1000))
    assert durations == [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096, 4096]


def test_a_stream_shares_no_steps_while_one_thread_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step seems to lose: the stream tries three, then runs alone, with the same bits, and frees the team."""
    monkeypatch.setattr(thread_cuts, "MIN_CUT_WORK", 0)
    monkeypatch.setattr(team, "core_count", lambda: 2)
    monkeypatch.setattr(NativeExecutable, "measure_step", lambda program: 1)
    program = pulse.stream(tcn(), 24, threads=2)
    assert isinstance(program, NativeProgram)
    single, several = program.with_threads(1).spawn(), program.spawn()
    shared_table = program.stream_table()[1]
    assert shared_table is not None
    sharing, block = shared_table.sharing, team.team_at(shared_table.team.address)
    (port,) = program.inputs
    rests, turns = list[int](), list[int]()
    for x in normal_noise(20, *port.shape):
        (expected,), (y,) = (state.step({port.name: x}).values() for state in (single, several))
        assert y.tobytes() == expected.tobytes()
        rests.append(sharing.rest)
        turns.append(block.turn)
        assert (block.owner, block.bases) == (0, 0)
    assert rests[:19] == [0, 0, *range(16, -1, -1)]
    changes = [before != after for before, after in pairwise(turns)]
    assert changes[:18] == [True, True, *[False] * 16]
    assert sharing.alone > 1  # measured meanwhile
