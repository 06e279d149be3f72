"""Policies of the executor, with an engine that runs on demand and a clock that jumps to the next event."""

from collections.abc import AsyncIterator
from typing import Any, Self

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.facts import Array
from streaming.executor import Executor, ExecutorError
from streaming.executor.executor_statistics import ExecutorStatistics
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.streaming.executor.manual_engine import HeldEngine, run_held
from tests.streaming.executor.streams import (
    assert_balanced,
    collect,
    join_pieces,
    named_program,
)

PULSE = 6
both_loops = pytest.mark.parametrize("loop", ["asyncio", "trio"])


def executor(engine: HeldEngine, policy: str, depth: int = 4, deadline_s: float | None = None) -> Executor:
    return Executor(
        named_program("filtered", PULSE, "numpy"), policy, depth, engine=engine, deadline_s=deadline_s
    )


def numbered_pulses(count: int) -> Array:
    """Pulses whose samples are numbered from 1."""
    return np.arange(1, count * PULSE + 1, dtype=np.float32).reshape(1, -1)


async def settle() -> None:
    """Let every other task run until it waits."""
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


class PushedSource:
    """A source that yields pulses on request and counts taken ones."""

    def __init__(self, x: Array) -> None:
        self.x, self.pulses_sent = x, 0
        self.send, self.receive = anyio.create_memory_object_stream(1000)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.send.close()

    async def push(self, pulses: int) -> None:
        for _ in range(pulses):
            self.send.send_nowait(self.x[:, self.pulses_sent * PULSE : (self.pulses_sent + 1) * PULSE])
            self.pulses_sent += 1
        await settle()


def counts(statistics: ExecutorStatistics) -> tuple[int, ...]:
    return statistics.frames_in, statistics.frames_out, statistics.frames_dropped, statistics.frames_in_flight


@both_loops
def test_wait_takes_only_as_many_pulses_as_fit(loop: str) -> None:
    async def main():
        engine, pushed = HeldEngine(), PushedSource(numbered_pulses(20))
        async with executor(engine, "wait") as ex, anyio.create_task_group() as tasks:
            pieces = []

            async def take():
                pieces.extend(await collect(ex.stream(pushed.receive)))

            tasks.start_soon(take)
            await pushed.push(7)
            assert engine.waiting_pulses == 4
            assert counts(ex.statistics()) == (
                5 * PULSE,
                0,
                0,
                5 * PULSE,
            )  # four under way, one waits for room
            engine.run(2)
            await settle()
            assert engine.waiting_pulses == 4
            assert counts(ex.statistics()) == (7 * PULSE, 2 * PULSE, 0, 5 * PULSE)
            pushed.send.close()
            while not pieces:
                engine.run(1)
                await settle()
        return ex, join_pieces(pieces, ex.program)

    ex, outputs = run_held(loop, main)
    assert_outputs_close(outputs, ex.program.model.typed.run({"x": numbered_pulses(7)}))
    assert counts(ex.statistics()) == (7 * PULSE, 7 * PULSE, 0, 0)


@both_loops
def test_drop_oldest_drops_pulses_that_have_not_begun(loop: str) -> None:
    async def main():
        engine, pushed = HeldEngine(), PushedSource(numbered_pulses(20))
        async with executor(engine, "drop_oldest") as ex, ex.stream(pushed.receive) as stream:
            pieces = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take_all, stream, pieces)
                await pushed.push(10)
                assert counts(ex.statistics()) == (10 * PULSE, 0, 6 * PULSE, 4 * PULSE)  # 6 7 8 9 wait
                tasks.cancel_scope.cancel()
            engine.run(3)  # 6 7 8 have run and are not taken
            await pushed.push(1)  # 9 is the oldest that has not begun
            assert counts(ex.statistics()) == (11 * PULSE, 0, 7 * PULSE, 4 * PULSE)
            engine.run(1)  # all have run: 11 has no room itself
            await pushed.push(1)
            assert counts(ex.statistics()) == (12 * PULSE, 0, 8 * PULSE, 4 * PULSE)
            pieces.append(await anext(stream))
            assert ex.statistics().frames_out == 4 * PULSE
            await pushed.push(2)
            pushed.send.close()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take_all, stream, pieces)
                for _ in range(10):
                    await settle()
                    engine.run(1)
        return ex, join_pieces(pieces, ex.program)

    async def take_all(stream, pieces):
        async for outputs in stream:
            pieces.append(outputs)

    ex, received = run_held(loop, main)
    expected = np.concatenate(
        [numbered_pulses(20)[:, k * PULSE : (k + 1) * PULSE] for k in (6, 7, 8, 10, 12, 13)], 1
    )
    assert_outputs_close(received, ex.program.model.typed.run({"x": expected}))
    statistics = ex.statistics()
    assert (statistics.pulses_dropped, counts(statistics)) == (8, (14 * PULSE, 6 * PULSE, 8 * PULSE, 0))


@both_loops
@settings(max_examples=25, deadline=None)
@given(
    actions=st.lists(st.sampled_from(["push", "push", "push", "run", "take"]), max_size=60),
    depth=st.integers(1, 5),
    rest=st.integers(0, PULSE - 1),
)
def test_drop_oldest_counts_every_frame_once(loop: str, actions: list[str], depth: int, rest: int) -> None:
    async def main():
        engine = HeldEngine()
        total = actions.count("push")
        pushed = PushedSource(numbered_pulses(total + 1))
        pieces = []
        async with executor(engine, "drop_oldest", depth) as ex, ex.stream(pushed.receive) as stream:
            for action in actions:
                if action == "push":
                    await pushed.push(1)
                elif action == "run":
                    engine.run(1)
                else:
                    with anyio.move_on_after(0):
                        pieces.append(await anext(stream))
                assert_balanced(ex.statistics())
                assert ex.statistics().frames_in_flight <= PULSE * depth
            pushed.send.send_nowait(pushed.x[:, total * PULSE : total * PULSE + rest])
            pushed.send.close()
            async with anyio.create_task_group() as tasks:

                async def work():
                    while True:
                        engine.run(1)
                        await settle()

                tasks.start_soon(work)
                async for outputs in stream:
                    pieces.append(outputs)
                    assert_balanced(ex.statistics())
                tasks.cancel_scope.cancel()
        return ex, join_pieces(pieces, ex.program), total

    ex, received, total = run_held(loop, main)
    statistics = ex.statistics()
    assert statistics.frames_in == total * PULSE + rest == statistics.frames_out + statistics.frames_dropped
    played = received["loud"] / 2 if received else np.zeros((1, 0), np.float32)
    assert played.shape[1] == statistics.frames_out
    assert np.all(np.diff(played) > 0)
    if received:
        assert_outputs_close(received, ex.program.model.typed.run({"x": played}))


async def paced_pulses(x: Array, arrivals: list[float], period_s: float) -> AsyncIterator[Any]:
    """Yield a pulse every ``period_s`` seconds and note the times."""
    start_s = anyio.current_time()
    for number in range(x.shape[1] // PULSE):
        await anyio.sleep_until(start_s + (number + 1) * period_s)
        arrivals.append(anyio.current_time())
        yield x[:, number * PULSE : (number + 1) * PULSE]


async def serve(engine: HeldEngine, services_s: list[float], ended: list[float]) -> None:
    """Run waiting pulses one after the other, each for the given time."""
    for service_s in services_s:
        while not engine.waiting_pulses:
            await anyio.sleep(0.0001)
        await anyio.sleep(service_s)
        ended.append(anyio.current_time())
        engine.run(1)


@both_loops
@settings(max_examples=25, deadline=None)
@given(
    services=st.lists(st.sampled_from([0.0007, 0.004, 0.0083, 0.013, 0.037, 0.11]), min_size=1, max_size=30),
    deadline=st.sampled_from([0.005, 0.01, 0.02]),
)
def test_silence_replaces_late_pulses_and_keeps_time(
    loop: str, services: list[float], deadline: float
) -> None:
    x = normal_noise(1, len(services) * PULSE)

    async def main():
        engine, arrivals, ended, pieces = HeldEngine(), [], [], []
        ex = executor(engine, "silence_then_catch_up", 40, deadline)
        async with ex, anyio.create_task_group() as tasks:
            tasks.start_soon(serve, engine, [*services, *[0.001] * 2], ended)
            async for outputs in ex.stream(paced_pulses(x, arrivals, 0.01)):
                pieces.append((anyio.current_time(), outputs))
                assert_balanced(ex.statistics())
            tasks.cancel_scope.cancel()
        return ex, arrivals, ended, pieces

    ex, arrivals, ended, pieces = run_held(loop, main)
    expected = ex.program.model.typed.run({"x": x})["loud"]
    output = np.concatenate([outputs["loud"] for _, outputs in pieces], 1)
    assert output.shape == expected.shape
    spare_s = [arrival + deadline - end for arrival, end in zip(arrivals, ended)]
    parts = output.reshape(len(spare_s), PULSE)
    late = [
        spare < 0 if abs(spare) > 1e-6 else not part.any()  # at the same moment either is right
        for spare, part in zip(spare_s, parts)
    ]
    at = 0
    for moment, outputs in pieces:
        for number in range(at // PULSE, (at + outputs["loud"].shape[1]) // PULSE):
            part = slice(number * PULSE, (number + 1) * PULSE)
            assert moment <= arrivals[number] + deadline + 1e-6
            np.testing.assert_allclose(output[:, part], 0 if late[number] else expected[:, part], rtol=1e-6)
        at += outputs["loud"].shape[1]
    statistics = ex.statistics()
    assert statistics.pulses_late == sum(late)
    assert statistics.frames_silent == PULSE * sum(late)
    assert statistics.frames_in == statistics.frames_out == x.shape[1]
    assert statistics.pulses == ex.program.steps(x.shape[1])


@both_loops
def test_finished_results_are_delivered_if_requested_late(loop: str) -> None:
    async def main():
        engine = HeldEngine()
        policy = "silence_then_catch_up"
        async with (
            executor(engine, policy, deadline_s=0.01) as ex,
            PushedSource(numbered_pulses(9)) as pushed,
        ):
            stream = ex.stream(pushed.receive)
            with anyio.move_on_after(0):
                await anext(stream)
            await pushed.push(2)
            engine.run(2)
            await anyio.sleep(5)
            return await anext(stream), ex.statistics().pulses_late

    outputs, late = run_held(loop, main)
    np.testing.assert_array_equal(outputs["loud"], 2 * numbered_pulses(2))
    assert late == 0


@both_loops
def test_abort_ends_the_stream_with_the_lateness(loop: str) -> None:
    async def main():
        engine, pieces = HeldEngine(), []
        async with (
            executor(engine, "abort", deadline_s=0.01) as ex,
            PushedSource(numbered_pulses(9)) as pushed,
        ):
            async with anyio.create_task_group() as tasks:

                async def push():
                    await pushed.push(1)
                    engine.run(1)
                    await anyio.sleep(0.5)
                    await pushed.push(2)

                tasks.start_soon(push)
                start_s = anyio.current_time()
                with pytest.raises(ExecutorError, match=r"^pulse 1 .* is late: ") as refusal:
                    async for outputs in ex.stream(pushed.receive):
                        pieces.append(outputs)
                failed_s = anyio.current_time() - start_s
            return ex, str(refusal.value), failed_s, join_pieces(pieces, ex.program)

    ex, message, failed_s, received = run_held(loop, main)
    assert message.startswith(
        "pulse 1 (frames 6 to 12) is late: not ready 10.0 ms after its last sample, and the deadline is 10 ms; 2 pulses"
    )
    assert failed_s == pytest.approx(0.51)
    np.testing.assert_array_equal(received["loud"], 2 * numbered_pulses(1))
    statistics = ex.statistics()
    assert (statistics.pulses_late, statistics.frames_discarded, counts(statistics)) == (2, 12, (18, 6, 0, 0))


@both_loops
def test_the_time_of_waiting_pulses_is_in_the_statistics(loop: str) -> None:
    async def main():
        engine, pushed = HeldEngine(), PushedSource(numbered_pulses(9))
        async with (
            executor(engine, "wait", deadline_s=1e-9) as ex,
            pushed,
            ex.stream(pushed.receive) as stream,
        ):
            with anyio.move_on_after(0):
                await anext(stream)
            await pushed.push(3)
            engine.run(3)
            await anext(stream)
            return ex.statistics()

    statistics = run_held(loop, main)
    assert (
        statistics.total.count
        == statistics.total.missed
        == statistics.waiting.count
        == statistics.compute.count
        == 3
    )
    values = statistics.as_dict()
    assert values["total"]["missed"] == 3
    assert values["frames_out"] == 18
    assert values["notes"] == []
