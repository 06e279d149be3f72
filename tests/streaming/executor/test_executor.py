"""Streams of an executor give the offline frames, on both event loops and both backends."""

import tracemalloc
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.errors import InputError, PulseError
from streaming.executor import Executor, ExecutorError
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.streaming.executor.manual_engine import HeldEngine
from tests.streaming.executor.streams import (
    assert_balanced,
    blocks,
    collect,
    join_pieces,
    named_program,
    threads,
)
from tests.streaming.models import both_backends

pytestmark = pytest.mark.anyio
SHAPES = {"filtered": (1, 0), "decimated": (1, 0, 2), "ending": (1, 0)}


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@both_backends
@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=12)
@given(data=st.data())
def test_executor_outputs_agree_with_offline_for_any_split(
    name: str, backend: str, loop: str, data: st.DataObject
) -> None:
    """Examples are drawn outside the event loop, so that no task keeps an exception of Hypothesis."""
    program = named_program(name, data.draw(st.sampled_from([3, 6, 12]), "pulse"), backend)
    length = data.draw(st.integers(3, 90), "length")
    cuts = data.draw(st.lists(st.integers(0, length), max_size=12), "cuts")
    depth = data.draw(st.integers(1, 4), "depth")
    x = normal_noise(*(length if axis == 1 else size for axis, size in enumerate(SHAPES[name])), seed=length)

    async def stream_blocks():
        async with Executor(program, depth=depth) as executor:
            return executor, await collect(executor.stream(blocks(x, 1, cuts)))

    executor, pieces = anyio.run(stream_blocks, backend=loop)
    assert_outputs_close(join_pieces(pieces, program), program.model.typed.run({"x": x}))
    statistics = executor.statistics()
    assert (statistics.frames_in, statistics.frames_out, statistics.streams) == (length, length, 0)
    assert statistics.pulses == program.steps(length) == statistics.total.count
    assert_balanced(statistics)


@both_backends
async def test_streams_at_once_have_states_of_their_own(backend: str) -> None:
    program = named_program("filtered", 3, backend)
    sounds = [normal_noise(1, 50 + 7 * number, seed=number) for number in range(9)]
    outputs = {}

    async def take(number):
        stream = executor.stream(blocks(sounds[number], 1, range(0, 110, 5 + number)))
        outputs[number] = join_pieces(await collect(stream), program)

    async with Executor(program, depth=2) as executor:
        async with anyio.create_task_group() as tasks:
            for number in range(len(sounds)):
                tasks.start_soon(take, number)
        assert executor.statistics().frames_out == sum(x.shape[1] for x in sounds)
    for number, x in enumerate(sounds):
        assert_outputs_close(outputs[number], program.model.typed.run({"x": x}))


@both_backends
async def test_two_rates_and_constants_agree_with_offline(backend: str) -> None:
    program = named_program("two_rates", 2, backend)
    fast, slow, gain = (
        normal_noise(1, 1, 44),
        normal_noise(1, 1, 11, seed=1),
        np.full((1, 1, 1), 0.5, np.float32),
    )
    source = [{"fast": fast[..., :30]}, {"slow": slow}, {}, {"fast": fast[..., 30:]}]
    async with Executor(program, constants={"gain": gain}) as executor:
        pieces = await collect(executor.stream(source))
        assert_balanced(executor.statistics())
    assert_outputs_close(
        join_pieces(pieces, program), program.model.typed.run({"fast": fast, "slow": slow, "gain": gain})
    )


async def test_the_last_frames_of_every_output_come_at_the_end() -> None:
    program = named_program("ending", 4)
    x = normal_noise(1, 30)
    async with Executor(program) as executor:
        pieces = await collect(executor.stream(blocks(x, 1, range(0, 30, 3))))
    assert all(any(array.size for array in piece.values()) for piece in pieces)
    assert ["last" in piece for piece in pieces] == [False] * (len(pieces) - 1) + [True]


@both_backends
async def test_an_empty_source_gives_nothing(backend: str) -> None:
    async with Executor(named_program("filtered", 3, backend)) as executor:
        assert await collect(executor.stream([])) == []
        assert await collect(executor.stream([np.zeros((1, 0), np.float32)])) == []
    async with Executor(named_program("ending", 4, backend)) as executor:
        with pytest.raises(InputError, match="last: no value in a stream of 0 frames"):
            await collect(executor.stream([]))


@both_backends
async def test_unsupported_input_raises_after_pending_outputs(
    backend: str,
) -> None:
    program = named_program("filtered", 3, backend)
    x = normal_noise(1, 31)
    bad = np.array([[0, np.nan]], np.float32)
    async with Executor(program) as executor:
        pieces = []
        with pytest.raises(InputError, match="x: NaN at frame 32; "):
            async for outputs in executor.stream([x, bad, x]):
                pieces.append(outputs)
        expected = program.model.typed.run({"x": x})
        assert_outputs_close(
            join_pieces(pieces, program), {"y": expected["y"][:, :28], "loud": expected["loud"][:, :30]}
        )
        statistics = executor.statistics()
        assert (statistics.frames_in, statistics.frames_out, statistics.frames_discarded) == (31, 30, 1)
        with pytest.raises(InputError, match=r"expected \[1, any\] f32, got f64"):
            await collect(executor.stream([x, x.astype(np.float64)]))
    async with Executor(program, check_finite=False) as executor:
        assert np.isnan(join_pieces(await collect(executor.stream([bad])), program)["loud"]).any()


@both_backends
async def test_executor_refuses_frames_beyond_the_longest_stream(backend: str) -> None:
    program = named_program("short", 2, backend)
    async with Executor(program) as executor:
        pieces = []
        with pytest.raises(InputError, match="at most 10 frames of T and has received 8"):
            async for outputs in executor.stream(normal_noise(1, 4, seed=seed) for seed in range(3)):
                pieces.append(outputs)
        assert join_pieces(pieces, program)["y"].shape == (1, 8)
        whole = await collect(executor.stream(normal_noise(1, 10)))
        assert join_pieces(whole, program)["y"].shape == (1, 10)
        assert_balanced(executor.statistics())


async def test_a_length_that_the_model_refuses_discards_its_frames() -> None:
    async with Executor(named_program("ending", 4)) as executor:
        with pytest.raises(InputError, match="2 frames of T"):
            await collect(executor.stream([normal_noise(1, 2)]))
        statistics = executor.statistics()
        assert (statistics.frames_in, statistics.frames_discarded) == (2, 2)


async def test_sources_wait_until_their_outputs_are_taken() -> None:
    program = named_program("filtered", 3)
    drawn = 0

    async def source():
        nonlocal drawn
        for _ in range(100):
            drawn += 1
            yield normal_noise(1, 3)

    engine = HeldEngine()
    async with Executor(program, depth=4, engine=engine) as executor, executor.stream(source()) as stream:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anext, stream)
            while not engine.waiting_pulses:
                await anyio.lowlevel.checkpoint()
            engine.run(1)
        for _ in range(100):  # the engine runs all that it gets; the outputs are not taken
            engine.run(4)
            await anyio.lowlevel.checkpoint()
        assert 4 <= drawn <= 4 + 4 + 1
        statistics = executor.statistics()
        assert statistics.frames_in_flight <= 3 * 5
        assert_balanced(statistics)
    assert_balanced(executor.statistics())
    assert executor.statistics().frames_in_flight == 0


async def test_a_long_stream_takes_no_more_memory_than_a_short_one() -> None:
    program, x = named_program("filtered", 6), normal_noise(1, 6)

    async def peak(pulses):
        tracemalloc.start()
        async with Executor(program) as executor:
            async for _ in executor.stream(x for _ in range(pulses)):
                pass
        bytes_at_most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return bytes_at_most

    await peak(50)
    assert await peak(4000) < await peak(400) + 30_000


async def test_streams_share_one_thread_of_the_executor() -> None:
    before = threads()
    async with Executor(named_program("filtered", 3)) as executor:
        streams = [executor.stream([normal_noise(1, 30)]) for _ in range(6)]
        for stream in streams:
            await anext(stream)
        assert [thread.name for thread in threads() - before] == ["pulse engine"]
    assert threads() <= before


async def test_executors_may_be_nested() -> None:
    program = named_program("filtered", 6)
    x = normal_noise(1, 200)
    expected = program.model.typed.run({"x": x})["loud"]
    async with Executor(program) as outer, Executor(program) as inner:
        doubled = [outputs["loud"] async for outputs in outer.stream(blocks(x, 1, [50]))]
        pieces = await collect(inner.stream(doubled))
    np.testing.assert_allclose(join_pieces(pieces, program)["loud"], 2 * expected, rtol=1e-6)


async def test_an_executor_is_opened_once_and_before_its_streams() -> None:
    executor = Executor(named_program("filtered", 3))
    stream = executor.stream([normal_noise(1, 9)])
    with pytest.raises(ExecutorError, match="the executor is not open"):
        await anext(stream)
    async with executor:
        assert len(await collect(executor.stream([normal_noise(1, 9)]))) > 0
        with pytest.raises(ExecutorError, match="entered once"):
            await executor.__aenter__()
    with pytest.raises(ExecutorError, match="the executor has been closed"):
        await anext(executor.stream([normal_noise(1, 9)]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"policy": "hope"},
            "unknown policy 'hope'; choose one of wait, drop_oldest, silence_then_catch_up, abort",
        ),
        ({"depth": 0}, "depth 0: give 1 or more"),
        ({"policy": "abort"}, "policy abort: give deadline_s, or rate_hz"),
        ({"deadline_s": -1.0}, "deadline_s -1: must be positive"),
        ({"rate_hz": 0}, "sample rates must be positive, got 0 Hz"),
        ({"constants": {"gain": np.zeros(1)}}, "inputs that do not stream"),
    ],
)
def test_executor_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Executor(named_program("filtered", 3), **options)


def test_programs_and_sources_are_checked() -> None:
    with pytest.raises(PulseError, match="expected a Program, got str"):
        Executor("model.onnx")
    with pytest.raises(InputError, match="int is not a source"):
        Executor(named_program("filtered", 3)).stream(3)


def test_the_deadline_of_a_known_rate_is_a_pulse() -> None:
    assert Executor(named_program("filtered", 6), rate_hz=600).deadline_s == 0.01
    assert Executor(named_program("filtered", 6), rate_hz=600, deadline_s=0.5).deadline_s == 0.5
