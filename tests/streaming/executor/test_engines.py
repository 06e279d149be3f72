"""Engines without an executor: turns, drops while pulses run, streams that come and go."""

import random
import select

import anyio
import numpy as np
import pytest

from pulse.facts import Array
from pulse.program.program import Program
from streaming.executor import Executor
from streaming.executor.executor import engine_for
from streaming.executor.native_engine import NativeEngine, NativeQueue
from streaming.executor.thread_engine import ThreadEngine, ThreadQueue
from streaming.realtime import Realtime
from tests.backends import BACKENDS
from tests.noise import normal_noise
from tests.streaming.executor.streams import assert_nothing_left, collect, named_program
from tests.waiting import wait_until

pytestmark = pytest.mark.anyio
PULSE = 6


@pytest.fixture(params=BACKENDS)
def program(request: pytest.FixtureRequest) -> Program:
    return named_program("filtered", PULSE, request.param)


def pulse(number: int) -> dict[str, Array]:
    return {"x": np.full((1, PULSE), number, np.float32)}


def collect_numbers(queue: NativeQueue | ThreadQueue, count: int) -> list[int]:
    """The numbers of the pulses that ran, recognised by their outputs."""
    return [int(result.outputs["loud"][0, 0]) // 2 for result in queue.collect(count)]


def wait_for_pulses(queue: NativeQueue | ThreadQueue, count: int) -> None:
    wait_until(lambda: queue.count_ready() >= count, f"{count} pulses are ready")


def test_the_engine_suits_the_backend() -> None:
    assert isinstance(engine_for(named_program("filtered", PULSE, "numpy"), None), ThreadEngine)
    assert isinstance(engine_for(named_program("filtered", PULSE, "numba"), None), NativeEngine)


async def test_streams_take_turns(program: Program) -> None:
    engine = engine_for(program, None)
    busy, calm = engine.open(program.spawn(), 8), engine.open(program.spawn(), 8)
    for number in range(8):
        busy.submit(pulse(number))
    calm.submit(pulse(0))
    calm.submit(pulse(1))
    engine.start()
    wait_for_pulses(busy, 8)
    started = [result.started_ns for result in busy.collect(8)]
    assert [sum(at < result.started_ns for at in started) for result in calm.collect(2)] == [1, 2]
    busy.close()
    calm.close()
    await engine.stop()


async def test_a_pulse_is_either_dropped_or_run(program: Program) -> None:
    engine, rng = engine_for(program, None), random.Random(1)
    queue = engine.open(program.spawn(), 5)
    for number in range(2):
        queue.submit(pulse(number))
    assert queue.drop() == 0
    submitted, dropped, ran, in_flight = 2, [0], [], [1]
    engine.start()
    for _ in range(3000):
        if queue.free_slots and rng.random() < 0.6:
            queue.submit(pulse(submitted))
            in_flight.append(submitted)
            submitted += 1
        elif rng.random() < 0.6:
            index = queue.drop()
            if index is not None:
                dropped.append(in_flight.pop(index))
        else:
            taken = collect_numbers(queue, queue.count_ready())
            assert in_flight[: len(taken)] == taken
            del in_flight[: len(taken)]
            ran += taken
    if queue.free_slots:  # one that is not dropped, whichever thread was faster until now
        queue.submit(pulse(submitted))
        in_flight.append(submitted)
        submitted += 1
    wait_for_pulses(queue, len(in_flight))
    ran += collect_numbers(queue, len(in_flight))
    assert sorted(ran + dropped) == list(range(submitted))
    assert ran == sorted(ran)
    assert dropped == sorted(dropped)
    assert ran
    assert dropped
    queue.close()
    await engine.stop()


async def test_no_pulse_runs_after_one_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    program, started = named_program("filtered", PULSE, "numpy"), []

    def fail_first(self, feed):
        started.append(int(feed["x"][0, 0]))
        raise MemoryError("no memory")

    monkeypatch.setattr(type(program.spawn()), "advance", fail_first)
    engine = engine_for(program, None)
    queue, other = engine.open(program.spawn(), 4), engine.open(program.spawn(), 4)
    engine.start()
    queue.submit(pulse(0))
    wait_until(lambda: queue.failure is not None, "the failure")
    queue.submit(pulse(1))
    other.submit(pulse(2))
    wait_until(lambda: other.failure is not None, "a pulse of another stream")
    assert started == [0, 2]
    assert queue.count_ready() == 0
    queue.close()
    other.close()
    await engine.stop()


async def test_streams_come_and_go_while_others_run(program: Program) -> None:
    engine, rng = engine_for(program, None), random.Random(2)
    engine.start()
    with assert_nothing_left():
        steady = engine.open(program.spawn(), 3)
        others, submitted, received = [], 0, []
        for _ in range(1500):
            if steady.free_slots:
                steady.submit(pulse(submitted))
                submitted += 1
            received += collect_numbers(steady, steady.count_ready())
            if len(others) < 20 and rng.random() < 0.5:
                others.append(engine.open(program.spawn(), 2))
                others[-1].submit(pulse(0))
            elif others:
                others.pop(rng.randrange(len(others))).close()
        wait_for_pulses(steady, submitted - len(received))
        received += collect_numbers(steady, submitted - len(received))
        for queue in (steady, *others):
            queue.close()
        await engine.stop()
        assert received == list(range(submitted))


async def test_listening_sets_the_event_once(program: Program) -> None:
    engine = engine_for(program, None)
    queue = engine.open(program.spawn(), 4)
    engine.start()
    queue.submit(pulse(0))
    wait_for_pulses(queue, 1)
    assert queue.listen() == 1
    queue.submit(pulse(1))
    with anyio.fail_after(5):
        await anyio.wait_readable(queue.event.to_read)
    queue.clear()
    queue.submit(pulse(2))
    wait_for_pulses(queue, 3)  # so the engine has left pulse 1, with all that it does after one
    readable, _, _ = select.select([queue.event.to_read], [], [], 0)
    assert not readable
    assert queue.listen() == 3
    assert collect_numbers(queue, 3) == [0, 1, 2]
    queue.close()
    await engine.stop()


async def test_refused_real_time_settings_of_the_thread_are_notes(
    program: Program,
) -> None:
    wishes = Realtime(priority=20, lock_memory=False, freeze_gc=True)
    async with Executor(program, realtime=wishes) as executor:
        await collect(executor.stream([normal_noise(1, 60)]))
        settings = executor.realtime_settings
        assert {setting.name for setting in settings} == {"priority", "collector"}
        assert executor.statistics().notes == tuple(
            str(setting) for setting in settings if not setting.is_granted
        )
