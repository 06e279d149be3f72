"""Sinks: functions, memory and byte streams, files; they set the pace, and their errors are raised."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import numpy as np
import onnxruntime
import pytest
import soundfile

from pulse.errors import InputError
from pulse.facts import Array
from pulse.ops.shape import AddAxis
from streaming.audio import files
from streaming.audio.files import AudioReader
from streaming.builtin import model_path, noisy_path
from streaming.executor import AudioFileSink, Executor, FramesFileSink, PcmSink, sinks
from streaming.files import partial
from streaming.files.atomic import create_temporary_file, publish
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.streaming.executor.byte_sink import ByteSink
from tests.streaming.executor.manual_engine import HeldEngine
from tests.streaming.executor.streams import assert_nothing_left, blocks, join_pieces, named_program
from tests.streaming.models import TypedBuilder
from tests.streaming.models import program as small_program

pytestmark = pytest.mark.anyio
RATE_HZ = 600


async def run_into(
    sink: Any, x: Array | None = None, name: str = "filtered", **options: Any
) -> dict[str, Array]:
    program = named_program(name, 6)
    x = normal_noise(1, 75) if x is None else x
    async with Executor(program, rate_hz=RATE_HZ, **options) as executor:
        await executor.run(blocks(x, 1, range(0, x.shape[1], 7)), sink)
    return program.model.typed.run({"x": x})


async def test_functions_and_coroutines_are_sinks() -> None:
    pieces = []

    async def later(outputs):
        await anyio.lowlevel.checkpoint()
        pieces.append(outputs)

    for sink in (pieces.append, later):
        pieces.clear()
        expected = await run_into(sink)
        assert_outputs_close(join_pieces(pieces, named_program("filtered", 6)), expected)


async def test_a_memory_stream_sets_the_pace() -> None:
    """Between two takes the engine runs whatever it has, and the source is read only as far as pulses fit."""
    send, receive = anyio.create_memory_object_stream(0)
    engine, pieces, ahead = HeldEngine(), [], []
    async with receive, anyio.create_task_group() as tasks:

        async def work_and_settle():
            for _ in range(20):
                engine.run(1)
                await anyio.lowlevel.checkpoint()

        async def take():
            while True:
                await work_and_settle()
                try:
                    pieces.append(receive.receive_nowait())
                except anyio.WouldBlock:
                    continue
                except anyio.EndOfStream:
                    return
                await work_and_settle()
                ahead.append(executor.statistics().frames_in_flight)

        tasks.start_soon(take)
        async with send, Executor(named_program("filtered", 6), depth=2, engine=engine) as executor:
            await executor.run(blocks(normal_noise(1, 200), 1, range(0, 200, 6)), send)
    assert join_pieces(pieces, executor.program)["loud"].shape == (1, 200)
    assert max(ahead) == 3 * 6


async def test_raw_samples_are_written_and_clipped() -> None:
    stream = ByteSink()
    expected = await run_into(PcmSink(stream, "f32", "y"))
    np.testing.assert_allclose(np.frombuffer(stream.data, np.float32), expected["y"][0], rtol=1e-5, atol=1e-6)
    stream, x = ByteSink(), np.array([[0, 0.25, 0.5, 0.75, -0.5, -0.75, 0.1, 1e-5]], np.float32)
    await run_into(PcmSink(stream, "s16", "loud"), x)
    assert np.frombuffer(stream.data, "<i2").tolist() == [0, 16384, 32767, 32767, -32768, -32768, 6554, 1]


@pytest.mark.parametrize("rate_hz", [None, 16_000, 44_100])
async def test_sound_files_are_as_long_as_their_source(tmp_path: Path, rate_hz: int | None) -> None:
    from pulse.api import stream

    program = stream(model_path())
    source, target = noisy_path(), tmp_path / "out.wav"
    sound = soundfile.read(source, dtype="float32")[0][: 5 * 16_000 + 77]
    if rate_hz is not None:
        source = tmp_path / "in.wav"
        soundfile.write(source, sound, rate_hz, subtype="FLOAT")
    async with Executor(program, rate_hz=16_000) as executor:
        await executor.run(source, AudioFileSink(target, encoding="FLOAT"))
    with AudioReader(source) as reader, AudioReader(target) as written:
        assert (written.rate_hz, written.frames) == (reader.rate_hz, reader.frames)
        if written.rate_hz == 16_000:
            x = np.concatenate(list(reader)).T
            (expected,) = onnxruntime.InferenceSession(model_path()).run(None, {"audio": x})
            np.testing.assert_allclose(np.concatenate(list(written)).T, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "clipped"),
    [
        (lambda folder: AudioFileSink(folder / "out.wav", output="loud"), 2),
        (lambda folder: AudioFileSink(folder / "out.wav", output="loud", encoding="FLOAT"), 0),
        (lambda _: PcmSink(ByteSink(), "s16", "loud"), 2),
        (lambda _: PcmSink(ByteSink(), "f32", "loud"), 0),
    ],
    ids=["a file of integers", "a file of floats", "a stream of integers", "a stream of floats"],
)
async def test_clipped_samples_are_counted(tmp_path: Path, make: Callable[..., Any], clipped: int) -> None:
    """Integer formats clip and count; float formats do neither."""
    x = np.zeros((1, 60), np.float32)
    x[0, [3, 5]] = 0.75
    sink = make(tmp_path)
    await run_into(sink, x)
    assert sink.clipping is not None
    assert sink.clipping.total == clipped
    assert sink.clipping.peaks == [1.5 if clipped else 0]


async def test_sound_files_may_have_another_rate_or_format(tmp_path: Path) -> None:
    await run_into(
        AudioFileSink(tmp_path / "out.flac", rate_hz=1200, output="loud"), normal_noise(1, 900) / 99
    )
    assert soundfile.info(tmp_path / "out.flac").frames == 1800
    await run_into(str(tmp_path / "out.ogg"), normal_noise(1, 900) / 99)
    assert soundfile.info(tmp_path / "out.ogg").samplerate == RATE_HZ


@pytest.mark.parametrize("name", ["out.wav", "out.npy"])
async def test_files_are_made_and_published_in_helper_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A slow disk does not hold up the streams of the event loop."""
    threads = []

    def note(function):
        def call(*arguments):
            threads.append(threading.get_ident())
            return function(*arguments)

        return call

    for module in (files, partial):
        for function in (create_temporary_file, publish):
            monkeypatch.setattr(module, function.__name__, note(function))
    await run_into(tmp_path / name)
    assert (tmp_path / name).exists()
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_array_files_have_the_frames_or_the_last_value(tmp_path: Path) -> None:
    expected = await run_into(tmp_path / "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected["y"], rtol=1e-5, atol=1e-6)
    expected = await run_into(FramesFileSink(tmp_path / "last.npy", "last"), name="ending")
    np.testing.assert_allclose(np.load(tmp_path / "last.npy"), expected["last"])


@pytest.mark.parametrize(("path", "frame"), [("y.npy", (1, 1)), ("y.wav", (1, 1)), ("y.csv", (1, 0))])
async def test_many_small_pieces_wait_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, frame: tuple[int, int]
) -> None:
    """The pieces have values or none."""
    count, max_pieces = 20_000, 0
    take = sinks.PendingArrays.take

    def count_pieces(waiting):
        nonlocal max_pieces
        pieces = take(waiting)
        max_pieces = max(max_pieces, len(pieces))
        return pieces

    monkeypatch.setattr(sinks.PendingArrays, "take", count_pieces)
    sink = sinks.make_sink(tmp_path / path)
    async with sink.open(named_program("filtered", 6), RATE_HZ, None) as write:
        for _ in range(count):
            await write({"y": np.zeros(frame, np.float32)})
    assert 0 < max_pieces <= 1000
    assert (tmp_path / path).exists()


async def test_an_error_of_a_sink_is_raised_and_leaves_no_file(tmp_path: Path) -> None:
    program = named_program("filtered", 6)
    error = OSError("the disk is full")

    def full(outputs):
        raise error

    with assert_nothing_left():
        async with Executor(program, rate_hz=RATE_HZ) as executor:
            with pytest.raises(OSError, match="the disk is full") as raised:
                await executor.run(blocks(normal_noise(1, 90), 1, [9]), full)
            assert raised.value is error
            with pytest.raises(InputError, match="NaN at frame 90"):
                bad = [normal_noise(1, 90), np.full((1, 9), np.nan, np.float32)]
                await executor.run(bad, tmp_path / "out.wav")
            statistics = executor.statistics()
            assert statistics.streams == statistics.frames_in_flight == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make_sink", "reason"),
    [
        pytest.param(lambda folder: 3, "int is not a sink", id="no sink"),
        pytest.param(
            lambda folder: PcmSink(ByteSink(), "s16", "same:2"),
            "unknown output 'same:2'",
            id="no channel",
        ),
        pytest.param(
            lambda folder: FramesFileSink(folder / "z.npy", "z"),
            "unknown output 'z'; choose one of same, third",
            id="no such output",
        ),
    ],
)
async def test_invalid_sinks_are_refused(
    tmp_path: Path, make_sink: Callable[[Path], Any], reason: str
) -> None:
    async with Executor(named_program("decimated", 6)) as executor:
        with pytest.raises(InputError, match=reason):
            await executor.run(normal_noise(1, 30, 2), make_sink(tmp_path))


async def test_a_model_without_audio_has_no_audio_sink() -> None:
    builder = TypedBuilder()
    same = builder.wire("same", AddAxis(2), builder.source("x", "9,T,f32"))
    async with Executor(small_program(builder.finish(same=same), 6)) as executor:
        with pytest.raises(InputError, match="builder: no output is audio; the outputs are same"):
            await executor.run(normal_noise(9, 30), PcmSink(ByteSink(), "s16"))
        with pytest.raises(InputError, match="same is not audio: same: 9,6,1,f32"):
            await executor.run(normal_noise(9, 30), PcmSink(ByteSink(), "s16", "same"))


async def test_an_audio_sink_needs_a_rate(tmp_path: Path) -> None:
    async with Executor(named_program("filtered", 6)) as executor:
        with pytest.raises(InputError, match="audio needs the model's rate"):
            await executor.run(normal_noise(1, 30), tmp_path / "x.wav")
