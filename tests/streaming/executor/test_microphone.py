"""A microphone as a source: every frame is processed or counted, and the device is closed at the end."""

from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.program import Program
from streaming.errors import DeviceError, ExecutorError
from streaming.executor import Executor, Microphone
from streaming.executor.executor_statistics import ExecutorStatistics
from streaming.live.pipeline_memory import RING_S
from streaming.virtual.host import VirtualDevice, VirtualHost
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.streaming.executor.manual_engine import run_held
from tests.streaming.executor.streams import (
    assert_balanced,
    collect,
    join_pieces,
    named_program,
    threads,
)
from tests.streaming.live.manual_device import open_descriptors
from tests.waiting import wait_in_task

pytestmark = pytest.mark.anyio
RATE_HZ = 16_000


def ending_host(**device: bool | int | str) -> VirtualHost:
    """A virtual device that ends without an error, as a file does."""
    host = VirtualHost(VirtualDevice(**{"rate_hz": RATE_HZ, **device}))
    host.is_finite = True
    return host


async def wait_until_open(host: VirtualHost) -> None:
    """Wait until the microphone has opened its device."""
    await wait_in_task(lambda: any(stream.calls for stream in host.streams), "the device is open")


async def play_and_end(host: VirtualHost, sound: Array, sizes: list[int]) -> None:
    """Let the device record a signal, block by block, and end."""
    await wait_until_open(host)
    start = 0
    for size in sizes:
        host.tick(sound[start : start + size])
        start += size
        await anyio.lowlevel.checkpoint()
    assert start == len(sound)
    host.finish()


async def outputs_of(
    host: VirtualHost, sound: Array, sizes: list[int], program: Program, channel: str = "mix", **options: int
) -> tuple[dict[str, Array], ExecutorStatistics]:
    """The outputs of a program for a signal, and the statistics."""
    async with (
        Executor(program, rate_hz=RATE_HZ) as executor,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(play_and_end, host, sound, sizes)
        pieces = await collect(executor.stream(Microphone(host=host, **options), channel))
    assert not host.streams
    assert_balanced(executor.statistics())
    return join_pieces(pieces, program), executor.statistics()


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([160] * 25, id="equal"),
        pytest.param([1] * 40 + [1000, 2960], id="single frames"),
        pytest.param([7, 313, 1, 4000 - 321], id="uneven"),
    ],
)
async def test_blocks_of_any_size_give_the_offline_frames(sizes: list[int]) -> None:
    program, x = named_program("filtered", 6), normal_noise(sum(sizes), 1)
    outputs, statistics = await outputs_of(ending_host(), x, sizes, program)
    assert_outputs_close(outputs, program.model.typed.run({"x": x.T}))
    assert statistics.frames_in == statistics.frames_out == len(x)


async def test_one_of_the_channels_or_their_mean_is_taken() -> None:
    program, x = named_program("filtered", 6), normal_noise(600, 3)
    host = ending_host(inputs=3)
    outputs, _ = await outputs_of(host, x[:, :2], [60] * 10, program)
    np.testing.assert_allclose(outputs["loud"], 2 * x[:, :2].mean(1)[None], atol=1e-6)
    outputs, _ = await outputs_of(host, x, [60] * 10, program, channel="2", channels=3)
    np.testing.assert_allclose(outputs["loud"], 2 * x[:, 2][None], atol=1e-6)


async def test_another_rate_is_resampled() -> None:
    time = np.arange(48_000) / 48_000
    x = np.sin(2 * np.pi * 440 * time).astype(np.float32)[:, None]
    host, program = ending_host(rate_hz=48_000), named_program("filtered", 6)
    outputs, statistics = await outputs_of(host, x, [480] * 100, program)
    expected = 2 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    assert statistics.frames_in == 16_000
    np.testing.assert_allclose(outputs["loud"][0, 500:-500], expected[500:-500], atol=1e-3)


async def test_untaken_frames_are_lost_and_counted() -> None:
    host = ending_host()
    microphone = Microphone(host=host)
    blocks = microphone.blocks()
    async with aclosing(blocks), anyio.create_task_group() as tasks:
        tasks.start_soon(tick_when_open, host, 160)
        received = len(await anext(blocks))
        frames = round(2 * RING_S * RATE_HZ) // 1600 * 1600
        host.run(normal_noise(frames, 1), 1600)
        host.finish()
        received += sum([len(block) async for block in blocks])
    assert microphone.frames_in == frames + 160 == received + microphone.frames_lost
    assert microphone.frames_lost >= frames / 3
    assert microphone.frames_lost % 1600 == 0


async def tick_when_open(host: VirtualHost, frames: int) -> None:
    await wait_until_open(host)
    host.tick(normal_noise(frames, 1))


async def test_a_device_that_ends_yields_its_frames_and_raises() -> None:
    host, program = VirtualHost(VirtualDevice(rate_hz=RATE_HZ)), named_program("filtered", 6)
    lengths = []
    async with anyio.create_task_group() as tasks, Executor(program, rate_hz=RATE_HZ) as executor:
        tasks.start_soon(play_and_end, host, normal_noise(600, 1), [60] * 10)
        with pytest.raises(DeviceError, match="ended by itself"):
            async for outputs in executor.stream(Microphone(host=host)):
                lengths.append(outputs["loud"].shape[1])
    assert sum(lengths) == 600
    assert not host.streams
    assert_balanced(executor.statistics())


async def test_cancelling_closes_the_device() -> None:
    host, program = VirtualHost(VirtualDevice(rate_hz=RATE_HZ)), named_program("filtered", 6)
    before = threads()
    async with Executor(program, rate_hz=RATE_HZ) as executor, anyio.create_task_group() as tasks:
        tasks.start_soon(collect, executor.stream(Microphone(host=host)))
        await wait_until_open(host)
        host.run(normal_noise(300, 1), 60)
        tasks.cancel_scope.cancel()
    assert not host.streams
    assert_balanced(executor.statistics())
    assert threads() <= before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted on Linux")
async def test_no_descriptor_stays_open() -> None:
    host, program = ending_host(), named_program("filtered", 6)
    await outputs_of(host, normal_noise(600, 1), [60] * 10, program)
    for _ in range(3):
        before = open_descriptors()
        await outputs_of(host, normal_noise(600, 1), [60] * 10, program)
        assert open_descriptors() <= before


async def test_a_device_that_hangs_is_not_waited_for() -> None:
    host = ending_host(hangs=True)
    blocks = Microphone(host=host).blocks()
    async with aclosing(blocks), anyio.create_task_group() as tasks:
        tasks.start_soon(tick_when_open, host, 160)
        assert len(await anext(blocks)) == 160
    assert not host.streams


async def test_a_microphone_has_one_stream_at_a_time() -> None:
    host = ending_host()
    microphone = Microphone(host=host)
    blocks = microphone.blocks()

    async def listen():
        await anext(blocks)

    async with aclosing(blocks), anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await wait_until_open(host)
        with pytest.raises(ExecutorError, match="another stream already has it"):
            await anext(microphone.blocks())
        tasks.cancel_scope.cancel()


async def test_a_device_that_cannot_be_opened_leaves_nothing_open() -> None:
    host = ending_host(refuses="another program has it")
    microphone = Microphone(host=host)
    for _ in range(2):
        with pytest.raises(DeviceError, match="another program has it"):
            await anext(microphone.blocks())
    assert not host.streams


async def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(InputError, match="'nowhere'; choose by index or name: 0 virtual: virtual"):
        Microphone("nowhere", host=ending_host())


def test_a_device_that_does_not_call_is_noticed(anyio_backend: str) -> None:
    host = VirtualHost(VirtualDevice(rate_hz=RATE_HZ))
    host.virtual_clock = False

    async def listen():
        with pytest.raises(DeviceError, match="has not called for 1 s"):
            await anext(Microphone(host=host).blocks())
        assert not host.streams

    run_held(anyio_backend, listen)


@pytest.mark.parametrize("options", [{"channels": 0}, {"channels": 2}, {"rate_hz": 0}, {"block_frames": -1}])
def test_impossible_requests_to_a_device_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="give 1 to 1 channel, a positive rate"):
        Microphone(host=ending_host(), **options)
