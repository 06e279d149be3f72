"""Programs whose steps are shared among threads, in sessions, executors, live runs and commands."""

import os
import threading
from pathlib import Path

import anyio
import numpy as np
import pytest

from pulse.errors import InputError
from pulse.program.machine import team, thread_cuts
from pulse.program.machine.team import help_others, run_parts
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.native.native_program import NativeProgram
from pulse.program.program import Program
from streaming.builtin import noisy_path
from streaming.compilation import warming
from streaming.executor import Executor
from streaming.realtime import share_priority
from streaming.realtime.rights import CAP_SYS_NICE, is_capable
from tests.noise import normal_noise
from tests.streaming.command import pulse, refusal, report
from tests.streaming.executor.streams import blocks, collect, join_pieces
from tests.streaming.live.runs import BLOCK, delayed_model, runs
from tests.streaming.models import cached_program

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.fixture(autouse=True)
def all_rows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut short rows too, in all steps, for two cores on any machine."""
    monkeypatch.setattr(thread_cuts, "MIN_CUT_WORK", 0)
    monkeypatch.setattr(NativeExecutable, "measure_step", lambda program: 1 << 40)
    monkeypatch.setattr(team, "core_count", lambda: 2)


def two_thread_program() -> Program:
    """A program whose steps have parts for two threads."""
    program = cached_program(delayed_model).with_threads(2)
    assert isinstance(program, NativeProgram)
    assert program.thread_cuts.count > 0
    return program


def test_live_runs_give_the_same_sound() -> None:
    x, played = normal_noise(40 * BLOCK, 1), []
    for program in (cached_program(delayed_model), two_thread_program()):
        with runs(program, engine="worker") as (host, live):
            played.append(host.run(x))
            assert live.statistics().counters.frames_silent == 0
    np.testing.assert_array_equal(played[0], played[1])
    assert np.any(played[0])


def test_a_callback_does_not_wait_for_threads() -> None:
    with (
        pytest.raises(InputError, match="a device's callback must not wait"),
        runs(two_thread_program(), engine="callback"),
    ):
        pass
    with (
        runs(cached_program(delayed_model), engine="callback", reserve_frames=20) as (_, live),
        pytest.raises(InputError, match="a device's callback must not wait"),
    ):
        live.control.swap(two_thread_program())


def test_an_executor_gives_the_same_frames() -> None:
    x = normal_noise(1200, 1).T.copy()

    async def stream_pieces(program):
        async with Executor(program) as executor:
            pieces = [None] * 3

            async def collect_stream(number):
                pieces[number] = await collect(executor.stream(blocks(x, 1, [500, 700])))

            async with anyio.create_task_group() as group:
                for number in range(3):
                    group.start_soon(collect_stream, number)
            return [join_pieces(piece, program) for piece in pieces]

    expected, shared_pieces = (
        anyio.run(stream_pieces, cached_program(delayed_model)),
        anyio.run(stream_pieces, two_thread_program()),
    )
    for piece, other in zip(expected, shared_pieces):
        np.testing.assert_array_equal(piece["y"], other["y"])


@pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="a priority for each thread is Linux's")
@pytest.mark.skipif(not is_capable(CAP_SYS_NICE), reason="this user may not give priorities")
def test_helpers_get_the_priority_of_the_thread_that_steps() -> None:
    program = two_thread_program()
    state = program.spawn()
    schedulers = []

    def step():
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(7))
        share_priority(program.helpers)
        schedulers.append(
            [os.sched_getscheduler(helper) & ~os.SCHED_RESET_ON_FORK for helper in program.helpers]
        )

    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
    assert schedulers == [[os.SCHED_FIFO]]
    del state


def test_commands_take_threads(tmp_path: Path) -> None:
    assert report("bench", "--steps", 5, "--rounds", 1, "--pulse", 4800, "--threads", 2)["threads"] == 2
    text = pulse("bench", "--steps", 5, "--rounds", 1, "--pulse", 4800, "--threads", 2, "--profile").stdout
    assert "instructions run in parts, on 2 threads" in text
    assert "fourier in 2 parts" in text
    assert (
        "in parts of M from (0, "
        in pulse("dump", "--stage", "program", "--pulse", 4800, "--threads", 2).stdout
    )
    for threads in (1, 2):
        pulse("run", "--pulse", 4800, "--threads", threads, noisy_path(), f"{threads}.wav")
    assert (tmp_path / "1.wav").read_bytes() == (tmp_path / "2.wav").read_bytes()


def test_commands_report_why_they_refuse() -> None:
    assert "--threads 3: this process may use 2 cores" in refusal("bench", "--threads", 3)
    assert "use --threads 2" in refusal("bench", "--threads", 3)
    assert "--threads 0: a step needs at least one thread" in refusal("run", "--threads", 0)
    assert "numpy backend runs on one thread" in refusal("bench", "--threads", 2, "--backend", "numpy")


def test_functions_of_teams_are_compiled_ahead() -> None:
    assert {help_others.name, run_parts.name} <= set(warming.kernel_names())
