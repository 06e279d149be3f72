"""Sources: whatever can be iterated, raw samples, audio files."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from pulse.facts import Array
from pulse.ops.shape import AddAxis
from streaming.audio import files
from streaming.builtin import SAMPLE_RATE_HZ, noisy_path
from streaming.executor import AsyncAudioSource, AudioFile, AudioFileSink, Executor, PcmSource
from streaming.executor.sources import open_in_thread
from streaming.native import resample
from streaming.native.filters import Filter, design
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise, quiet_noise
from tests.streaming.echo_canceller import cancelled_sound, cancelling_program
from tests.streaming.executor.streams import blocks, collect, join_pieces, named_program
from tests.streaming.models import TypedBuilder
from tests.streaming.models import program as small_program

pytestmark = pytest.mark.anyio
RATE_HZ = 600


class ByteChunks(anyio.abc.ByteReceiveStream):
    """A byte stream that yields prepared chunks."""

    def __init__(self, data: bytes, size: int) -> None:
        self.chunks = [data[at : at + size] for at in range(0, len(data), size)]
        self.closed = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        if not self.chunks:
            raise anyio.EndOfStream
        return self.chunks.pop(0)

    async def aclose(self) -> None:
        self.closed = True


async def frames_of(source: Any, **options: str) -> dict[str, Array]:
    program = named_program("filtered", 6)
    async with Executor(program, rate_hz=RATE_HZ) as executor:
        return join_pieces(await collect(executor.stream(source, **options)), program)


def split(x: Array) -> list[Array]:
    return np.split(x, [10, 33], 1)


@pytest.mark.parametrize(
    "source_of",
    [
        lambda x: x,
        lambda x: {"x": x},
        split,
        lambda x: iter(split(x)),
        lambda x: (x for _ in range(1)),
        lambda x: blocks(x, 1, [5, 40]),
    ],
    ids=["array", "arrays by name", "list", "iterator", "generator", "async generator"],
)
async def test_anything_that_can_be_iterated_is_a_source(source_of: Callable[[Array], Any]) -> None:
    x = normal_noise(1, 70)
    expected = named_program("filtered", 6).model.typed.run({"x": x})
    assert_outputs_close(await frames_of(source_of(x)), expected)


async def test_a_memory_stream_is_a_source_and_is_closed() -> None:
    x = normal_noise(1, 70)
    send, receive = anyio.create_memory_object_stream(10)
    with send:
        for piece in split(x):
            send.send_nowait(piece)
    assert_outputs_close(await frames_of(receive), named_program("filtered", 6).model.typed.run({"x": x}))
    with pytest.raises(anyio.ClosedResourceError):
        receive.receive_nowait()


async def test_a_generator_is_closed_with_its_stream() -> None:
    closed = []

    def source():
        try:
            while True:
                yield normal_noise(1, 6)
        finally:
            closed.append(True)

    async with (
        Executor(named_program("filtered", 6)) as executor,
        executor.stream(source()) as stream,
    ):
        await anext(stream)
    assert closed == [True]


@pytest.mark.parametrize("size", [1, 3, 8, 4096])
@pytest.mark.parametrize(("encoding", "scale", "dtype"), [("s16", 1 << 15, "<i2"), ("s32", 1 << 31, "<i4")])
async def test_a_source_reads_raw_samples(encoding: str, scale: int, dtype: str, size: int) -> None:
    samples = np.random.default_rng(0).integers(-scale, scale, (90, 2)).astype(dtype)
    source = ByteChunks(samples.tobytes(), size)
    x = (samples[:, 1:].T / scale).astype(np.float32)
    outputs = await frames_of(PcmSource(source, encoding, 2, RATE_HZ), channel="1")
    assert_outputs_close(outputs, named_program("filtered", 6).model.typed.run({"x": x}))
    assert source.closed


async def test_raw_floats_are_read_and_incomplete_ones_refused() -> None:
    x = normal_noise(90, 1)
    outputs = await frames_of(PcmSource(ByteChunks(x.tobytes(), 7), "f32", 1, RATE_HZ))
    assert_outputs_close(outputs, named_program("filtered", 6).model.typed.run({"x": x.T}))
    with pytest.raises(
        InputError, match="ends after 2 of the 4 bytes of a frame; check encoding and channels"
    ):
        await frames_of(PcmSource(ByteChunks(x.tobytes()[:-2], 7), "f32", 1, RATE_HZ))


def test_raw_samples_of_unknown_encoding_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"unknown encoding 'u9'.*; choose one of u8, s16, s24, s32, f32, f64"
    ):
        PcmSource(ByteChunks(b"", 1), "u9", 1, RATE_HZ)


def test_raw_samples_of_no_channels_are_refused() -> None:
    with pytest.raises(InputError, match="both must be positive"):
        PcmSource(ByteChunks(b"", 1), "s16", 0, RATE_HZ)


async def test_sound_files_are_read_at_the_rate_of_the_model(tmp_path: Path) -> None:
    path, x = tmp_path / "in.wav", normal_noise(4000, 2) / 8
    soundfile.write(path, x, RATE_HZ, subtype="FLOAT")
    expected = named_program("filtered", 6).model.typed.run({"x": x.mean(1, keepdims=True).T})
    assert_outputs_close(await frames_of(AudioFile(path)), expected)
    assert_outputs_close(await frames_of(str(path)), expected)
    assert_outputs_close(
        await frames_of(path, channel="0"), named_program("filtered", 6).model.typed.run({"x": x[:, :1].T})
    )
    async with Executor(named_program("filtered", 6), rate_hz=2 * RATE_HZ) as executor:
        pieces = await collect(executor.stream(path))
    assert join_pieces(pieces, executor.program)["loud"].shape == (1, 8000)


async def test_sound_files_are_opened_in_helper_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soundfile.write(tmp_path / "in.wav", normal_noise(400) / 8, RATE_HZ)
    source, threads, open_file = AudioFile(tmp_path / "in.wav"), [], files.open_file
    monkeypatch.setattr(
        files, "open_file", lambda path: (threads.append(threading.get_ident()), open_file(path))[1]
    )
    await frames_of(source)
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_signals_that_do_not_fit_are_refused() -> None:
    executor = Executor(named_program("filtered", 6))
    with pytest.raises(InputError, match="audio needs the model's rate: give rate_hz"):
        executor.stream(noisy_path())
    executor = Executor(named_program("filtered", 6), rate_hz=SAMPLE_RATE_HZ)
    with pytest.raises(InputError, match="channel 7: the audio has 1 channel"):
        executor.stream(noisy_path(), channel="7")
    with pytest.raises(InputError, match="open a stream for each channel"):
        executor.stream(noisy_path(), channel="each")
    with pytest.raises(
        InputError, match=r"the source: has 1 channel, and .* takes 2 channels: x:0, x:1; give blocks"
    ):
        Executor(named_program("decimated", 6), rate_hz=RATE_HZ).stream(noisy_path())
    builder = TypedBuilder()
    wide = small_program(
        builder.finish(same=builder.wire("same", AddAxis(2), builder.source("x", "9,T,f32"))), 6
    )
    with pytest.raises(InputError, match="takes no audio; give arrays, by input: x"):
        Executor(wide, rate_hz=RATE_HZ).stream(noisy_path())


async def test_sound_that_cannot_be_resampled_is_refused_at_once() -> None:
    source = PcmSource(ByteChunks(b"", 1), "s16", 1, 300 * RATE_HZ)
    with pytest.raises(InputError, match="differ by more than a factor of 256"):
        Executor(named_program("filtered", 6), rate_hz=RATE_HZ).stream(source)
    source.rate_hz, source.quality = RATE_HZ, "hihg"
    with pytest.raises(InputError, match=r"'hihg' \(did you mean high"):
        Executor(named_program("filtered", 6), rate_hz=RATE_HZ).stream(source)


async def test_resamplers_are_made_in_helper_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new filter takes too long for an event loop."""
    made_in = []

    def design_in_thread(*arguments: Any) -> Filter:
        made_in.append(threading.current_thread())
        return design(*arguments)

    monkeypatch.setattr(resample, "design", design_in_thread)
    source = PcmSource(ByteChunks(bytes(4000), 100), "s16", 1, 2 * RATE_HZ)
    async with Executor(named_program("filtered", 6), rate_hz=RATE_HZ) as executor:
        await executor.run(source, AudioFileSink(tmp_path / "out.wav", output="loud"))
    assert len(made_in) == 2
    assert threading.current_thread() not in made_in


@pytest.mark.parametrize("checkpoints", range(1, 5))
async def test_a_cancelled_source_of_raw_samples_is_closed(checkpoints: int) -> None:
    """Even if it is cancelled before the first block, when its resampler is made."""
    stream = ByteChunks(bytes(4000), 100)

    async def cancel_soon():
        for _ in range(checkpoints):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    async with (
        anyio.create_task_group() as tasks,
        Executor(named_program("filtered", 6), rate_hz=RATE_HZ) as executor,
    ):
        tasks.start_soon(cancel_soon)
        await collect(executor.stream(PcmSource(stream, "s16", 1, 2 * RATE_HZ)))
    assert stream.closed


async def test_a_sound_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    executor = Executor(named_program("filtered", 6), rate_hz=SAMPLE_RATE_HZ)
    with pytest.raises(InputError, match="no such file"):
        executor.stream(tmp_path / "none.wav")


async def test_a_subclass_of_sound_source_is_a_source() -> None:
    class Ramp(AsyncAudioSource):
        rate_hz, channels = RATE_HZ, 1

        async def blocks(self):
            for number in range(5):
                yield np.full((11, 1), number, np.float32)

    x = np.repeat(np.arange(5, dtype=np.float32), 11)[None]
    assert_outputs_close(await frames_of(Ramp()), named_program("filtered", 6).model.typed.run({"x": x}))


async def test_several_inputs_are_fed(tmp_path: Path) -> None:
    """Blocks of unequal length by input; and the channels of a file, in the order of the inputs."""
    compiled, sounds = cancelling_program(32), {"mic": quiet_noise(500, 1), "far": quiet_noise(500, 2)}
    expected = cancelled_sound(compiled, sounds["mic"], sounds["far"])

    def pushes():
        for at in range(0, 500, 50):
            yield {"mic": sounds["mic"][None, at : at + 50]}
            if at % 100 == 50:
                yield {"far": sounds["far"][None, at - 50 : at + 50]}

    path = tmp_path / "in.wav"
    soundfile.write(path, np.stack(list(sounds.values()), axis=1), RATE_HZ, subtype="FLOAT")
    async with Executor(compiled, rate_hz=RATE_HZ) as executor:
        for source in (pushes(), path):
            outputs = join_pieces(await collect(executor.stream(source)), compiled)
            assert all(np.array_equal(outputs[name][0], expected[name]) for name in expected)
        soundfile.write(path, sounds["mic"], RATE_HZ)
        with pytest.raises(InputError, match=r"has 1 channel, and .* 2 audio inputs: mic, far"):
            await collect(executor.stream(path))
        with pytest.raises(InputError, match="go to mic, far in order"):
            soundfile.write(path, np.zeros((100, 2)), RATE_HZ)
            await collect(executor.stream(path, "1"))


class SlowFile:
    """A file that is opened and closed only when the test lets it."""

    def __init__(self, may_open: threading.Event) -> None:
        self.may_open, self.ends = may_open, list[Any]()
        self.closed = threading.Event()

    def open(self) -> "SlowFile":
        assert self.may_open.wait(10)
        return self

    def __enter__(self) -> "SlowFile":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.ends.append(kind)
        self.closed.set()


@pytest.mark.parametrize("opens_first", [False, True])
def test_a_file_that_opens_while_asyncio_cancels_is_closed(opens_first: bool) -> None:
    """asyncio's own cancellation does not wait for the thread, as anyio's does."""
    file = SlowFile(threading.Event())

    async def use() -> None:
        async with open_in_thread(file.open):
            await asyncio.sleep(100)

    async def cancel() -> None:
        task = asyncio.create_task(use())
        await asyncio.sleep(0.02)
        if opens_first:
            file.may_open.set()
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        file.may_open.set()

    asyncio.run(cancel())
    assert file.closed.wait(10)
    assert file.ends == [asyncio.CancelledError]
