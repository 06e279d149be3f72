"""However streams end: no thread or descriptor is left, every frame is in the statistics, errors are plain."""

import contextlib
import os
import threading
import warnings
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from pulse.facts import Array
from streaming.executor import Executor, ExecutorError
from streaming.executor.engine_thread import EngineThread
from streaming.executor.thread_engine import ThreadQueue
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.streaming.executor.manual_engine import HeldEngine
from tests.streaming.executor.streams import (
    assert_balanced,
    assert_nothing_left,
    collect,
    join_pieces,
    named_program,
)
from tests.streaming.models import both_backends
from tests.waiting import wait_in_task

pytestmark = pytest.mark.anyio
PULSE = 3


class Source:
    """Pulses without end, until a test lets it fail; knows whether it has been closed."""

    def __init__(self, fail_at: int | None = None, error: Any = None, in_cleanup: Any = None) -> None:
        self.fail_at, self.error, self.in_cleanup = fail_at, error, in_cleanup
        self.pulses_made, self.closed = 0, False

    async def blocks(self) -> AsyncIterator[Any]:
        try:
            while True:
                if self.pulses_made == self.fail_at:
                    raise self.error
                self.pulses_made += 1
                yield normal_noise(1, PULSE, seed=self.pulses_made)
                await anyio.lowlevel.checkpoint()
        finally:
            self.closed = True
            if self.in_cleanup:
                raise self.in_cleanup

    @property
    def x(self) -> Array:
        return np.concatenate(
            [normal_noise(1, PULSE, seed=1 + number) for number in range(self.pulses_made)], 1
        )


@both_backends
async def test_leaving_a_stream_closes_its_source_and_others_continue(backend: str) -> None:
    program = named_program("filtered", PULSE, backend)
    source, x = Source(), normal_noise(1, 20)
    with assert_nothing_left():
        async with Executor(program) as executor:
            async for _ in executor.stream(source.blocks()):
                break
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert source.closed
            statistics = executor.statistics()
            assert (statistics.streams, statistics.frames_in_flight) == (0, 0)
            assert_balanced(statistics)
            pieces = await collect(executor.stream([x]))
    assert_outputs_close(join_pieces(pieces, program), program.model.typed.run({"x": x}))


@both_backends
async def test_closing_a_stream_waits_for_its_source(backend: str) -> None:
    source = Source()
    with assert_nothing_left():
        async with Executor(named_program("filtered", PULSE, backend)) as executor:
            async with executor.stream(source.blocks()) as stream:
                await anext(stream)
            assert source.closed
            assert executor.statistics().streams == 0
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
            with pytest.raises(ExecutorError, match="the stream has ended"):
                await collect(stream)
            async with executor.stream(source.blocks()):
                pass  # never begun


@both_backends
async def test_a_cancelled_take_loses_no_output(backend: str) -> None:
    program = named_program("filtered", PULSE, backend)
    engine, x, pieces, cancelled = HeldEngine(), normal_noise(1, 120), [], 0
    send, receive = anyio.create_memory_object_stream(100)
    async with Executor(program, engine=engine) as executor, executor.stream(receive) as stream:
        for at in range(0, 120, 4):
            with anyio.move_on_after(0) as scope:
                while True:
                    pieces.append(await anext(stream))
            cancelled += scope.cancelled_caught
            await send.send(x[:, at : at + 4])
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            engine.run(1)
        assert cancelled == 30
        assert len(pieces) > 20
        send.close()
        async with anyio.create_task_group() as tasks:

            async def work() -> None:
                while True:
                    engine.run(1)
                    await anyio.lowlevel.checkpoint()

            tasks.start_soon(work)
            pieces += await collect(stream)
            tasks.cancel_scope.cancel()
    assert_outputs_close(join_pieces(pieces, program), program.model.typed.run({"x": x}))


@both_backends
@pytest.mark.parametrize("group", [False, True])
async def test_errors_of_sources_are_raised_after_their_outputs(backend: str, group: bool) -> None:
    program = named_program("filtered", PULSE, backend)
    error = OSError("the cable is out")
    source = Source(12, ExceptionGroup("tasks", [ExceptionGroup("more", [error])]) if group else error)
    pieces = []
    with assert_nothing_left():
        async with Executor(program) as executor:
            with pytest.raises(OSError, match="the cable is out") as raised:
                async for outputs in executor.stream(source.blocks()):
                    pieces.append(outputs)
            assert raised.value is error
            assert executor.statistics().frames_out == 12 * PULSE
    expected = program.model.typed.run({"x": source.x})
    assert_outputs_close(
        join_pieces(pieces, program), {"y": expected["y"][:, : 12 * PULSE - 2], "loud": expected["loud"]}
    )


async def has_failed(source: Source) -> None:
    await wait_in_task(lambda: source.fail_at is None or source.closed, "the end of the source")


async def take_one(executor: Executor, source: Source) -> None:
    async for _ in executor.stream(source.blocks()):
        await has_failed(source)
        return


OUT, BURNS = OSError("the cable is out"), OSError("the cable burns")
FAILING = {"in a pulse": {"fail_at": 2, "error": OUT}, "in its cleanup": {"in_cleanup": OUT}}
failing = pytest.mark.parametrize("options", FAILING.values(), ids=FAILING)


@failing
async def test_errors_of_abandoned_streams_are_raised_by_the_executor(options: dict[str, Any]) -> None:
    source = Source(**options)
    with assert_nothing_left():
        with pytest.raises(OSError, match="the cable is out") as raised:
            async with Executor(named_program("filtered", PULSE)) as executor:
                await take_one(executor, source)
                await take_one(executor, Source())
        assert raised.value is OUT
        assert source.closed


@failing
async def test_a_closed_stream_raises_the_error_of_its_source(options: dict[str, Any]) -> None:
    source, program = Source(**options), named_program("filtered", PULSE)
    with assert_nothing_left():
        with pytest.raises(OSError, match="the cable is out") as raised:
            async with Executor(program) as executor, executor.stream(source.blocks()) as stream:
                await anext(stream)
                await has_failed(source)
        assert raised.value is OUT


async def test_errors_of_several_sources_are_raised_together() -> None:
    with assert_nothing_left():
        with pytest.raises(ExceptionGroup) as group:
            async with Executor(named_program("filtered", PULSE)) as executor:
                await take_one(executor, Source(in_cleanup=OUT))
                await take_one(executor, Source(in_cleanup=BURNS))
        assert group.value.exceptions == (OUT, BURNS)


async def test_errors_of_the_body_have_errors_of_sources_as_notes() -> None:
    with assert_nothing_left():
        with pytest.raises(KeyError) as raised:
            async with Executor(named_program("filtered", PULSE)) as executor:
                await take_one(executor, Source(in_cleanup=OUT))
                async with executor.stream(Source(in_cleanup=BURNS).blocks()) as stream:
                    await anext(stream)
                    raise KeyError("mine")
        notes = ["besides: OSError: the cable burns", "besides: OSError: the cable is out"]
        assert raised.value.__notes__ == notes


@pytest.mark.parametrize("opened", [True, False])
async def test_a_cancellation_does_not_hide_the_error_of_a_source(opened: bool) -> None:
    with assert_nothing_left():
        with pytest.raises(OSError, match="the cable is out") as raised, anyio.CancelScope() as scope:
            async with Executor(named_program("filtered", PULSE)) as executor:
                stream = executor.stream(Source(in_cleanup=OUT).blocks())
                async with stream if opened else contextlib.nullcontext():
                    await anext(stream)
                    scope.cancel()
                    await anyio.sleep_forever()
        assert raised.value is OUT


@both_backends
async def test_the_error_of_the_body_is_raised_unchanged(backend: str) -> None:
    error, source = KeyError("mine"), Source()
    with assert_nothing_left():
        with pytest.raises(KeyError) as raised:
            async with Executor(named_program("filtered", PULSE, backend)) as executor:
                async for _ in executor.stream(source.blocks()):
                    raise error
        assert raised.value is error
        assert source.closed
        group = ExceptionGroup("the body's own", [error])
        with pytest.raises(ExceptionGroup) as raised:
            async with Executor(named_program("filtered", PULSE, backend)):
                raise group
        assert raised.value is group


@both_backends
async def test_closing_an_executor_ends_its_streams_with_an_error(backend: str) -> None:
    program, refusals = named_program("filtered", PULSE, backend), []

    async def take(stream):
        with pytest.raises(ExecutorError, match="has been closed") as refusal:
            await collect(stream)
        refusals.append(str(refusal.value))

    sources = [Source() for _ in range(3)]
    silent, receive = anyio.create_memory_object_stream()
    with assert_nothing_left(), silent:
        async with anyio.create_task_group() as tasks, Executor(program) as executor:
            for source in sources:
                tasks.start_soon(take, executor.stream(source.blocks()))
            tasks.start_soon(take, executor.stream(receive))
            await wait_in_task(lambda: executor.statistics().streams == 4, "four streams")
            await wait_in_task(lambda: min(source.pulses_made for source in sources) > 3, "pulses of each")
            assert executor.statistics().streams == 4
    assert refusals == ["the executor has been closed; pulses in flight are counted as discarded"] * 4
    statistics = executor.statistics()
    assert statistics.streams == statistics.frames_in_flight == 0
    assert_balanced(statistics)


@both_backends
async def test_cancelling_an_executor_closes_its_sources(backend: str) -> None:
    source = Source()
    with assert_nothing_left():
        with anyio.CancelScope() as scope:
            async with Executor(named_program("filtered", PULSE, backend)) as executor:
                async for _ in executor.stream(source.blocks()):
                    if executor.statistics().frames_out > 0:
                        scope.cancel()
        assert scope.cancelled_caught
        assert source.closed
    assert executor.statistics().frames_out > 0
    assert_balanced(executor.statistics())


async def test_two_tasks_may_not_take_from_one_stream() -> None:
    engine = HeldEngine()
    with assert_nothing_left():
        async with Executor(named_program("filtered", PULSE), engine=engine) as executor:
            stream = executor.stream([normal_noise(1, 9)])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anext, stream)
                while engine.waiting_pulses < 3:
                    await anyio.lowlevel.checkpoint()
                with pytest.raises(ExecutorError, match="two tasks take the outputs of one stream"):
                    await anext(stream)
                engine.run(3)


async def test_errors_of_pulses_are_raised_after_earlier_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The state of the pulse that fails is unknown, so no later one runs, even one that would not fail."""
    program, started = named_program("filtered", PULSE, "numpy"), []
    state = type(program.spawn())
    advance = state.advance

    def run_or_fail(self, feed):
        started.append(self.clock.pulse)
        if len(started) == 6:
            raise MemoryError("no room for pulse 5")
        return advance(self, feed)

    monkeypatch.setattr(state, "advance", run_or_fail)
    pieces, source = [], Source()
    with assert_nothing_left():
        async with Executor(program) as executor:
            with pytest.raises(MemoryError, match="pulse 5"):
                async for outputs in executor.stream(source.blocks()):
                    pieces.append(outputs)
            assert source.closed
            assert started == list(range(6))
            assert join_pieces(pieces, program)["loud"].shape[1] == 5 * PULSE
            statistics = executor.statistics()
            assert statistics.frames_out == 5 * PULSE
            assert statistics.frames_discarded > 0
            assert_balanced(statistics)


async def test_outputs_of_late_pulses_come_before_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, engine = named_program("filtered", PULSE, "numpy"), HeldEngine()
    state = type(program.spawn())
    advance, look = state.advance, ThreadQueue.count_ready

    def run_or_fail(self, feed):
        if self.clock.pulse == 2:
            raise MemoryError("no room for pulse 2")
        return advance(self, feed)

    def look_and_note(queue):
        ready_pulses = look(queue)
        engine.run(engine.waiting_pulses)
        return ready_pulses

    monkeypatch.setattr(state, "advance", run_or_fail)
    pieces = []

    async def take(stream):
        async for outputs in stream:
            pieces.append(outputs)

    with assert_nothing_left():
        async with Executor(program, engine=engine) as executor:
            with pytest.raises(MemoryError, match="pulse 2"):
                async with executor.stream([normal_noise(1, 9)]) as stream:
                    with anyio.move_on_after(0):
                        await anext(stream)
                    while engine.waiting_pulses < 3:
                        await anyio.lowlevel.checkpoint()
                    monkeypatch.setattr(ThreadQueue, "count_ready", look_and_note)
                    await take(stream)
    assert join_pieces(pieces, program)["loud"].shape[1] == 2 * PULSE


async def test_a_worker_that_hangs_is_an_error_after_the_timeout() -> None:
    hang = threading.Event()
    worker = EngineThread(hang.wait, lambda: None, None)
    worker.start()
    with pytest.raises(ExecutorError, match=r"the engine has not ended within 0\.01 s: a pulse hangs"):
        await worker.stop(0.01)
    hang.set()
    await worker.stop()


async def test_a_stream_does_not_outlive_a_fork() -> None:
    async with Executor(named_program("filtered", PULSE)) as executor:
        stream = executor.stream(Source().blocks())
        await anext(stream)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                stream.__anext__().send(None)
            except ExecutorError as refusal:
                os._exit(0 if "before the fork" in str(refusal) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        await anext(stream)
        await stream.aclose()
