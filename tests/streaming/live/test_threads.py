"""Runs with real threads: they leave nothing behind, however they end; and runs that fail before they begin."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError, PulseError
from pulse.facts import Array
from streaming.audio.files import AudioWriter
from streaming.errors import DeviceError
from streaming.live import EngineConfig, Live, Plan, watchdog
from streaming.live import control as control_module
from streaming.live import live as live_module
from streaming.live.file_host import FileHost
from streaming.live.worker import Worker
from streaming.realtime.realtime_settings import UNCHANGED
from streaming.virtual.host import VirtualDevice, VirtualHost
from tests.noise import normal_noise
from tests.streaming.live.manual_device import (
    ManualHost,
    assert_nothing_left,
    open_descriptors,
    ramp,
)
from tests.streaming.live.runs import (
    BLOCK,
    RATE,
    assert_frames_add_up,
    engines,
    fields,
    late_by,
    played_by,
    runs,
    virtual_run,
)
from tests.streaming.models import cached_program, filter_model
from tests.waiting import WAIT_TIMEOUT_S, wait_until


def test_a_blocked_worker_loses_and_counts_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker stands still for ten seconds of sound; the device does not count as stalled."""
    monkeypatch.setattr(
        watchdog, "STALL_TIMEOUT_S", WAIT_TIMEOUT_S
    )  # this thread is the device: it may be late
    host = ManualHost()
    compiled = cached_program(backend="numpy")
    with Live(compiled, Plan(RATE, block_frames=BLOCK), realtime=UNCHANGED, host=host) as live:
        pipeline, x = live.pipeline, ramp(1300 * BLOCK)
        blocks = iter(np.split(x, 1300))

        def has_caught_up():
            return fields(live).pulses * BLOCK == fields(live).in_written

        def play_blocks(count, waits):
            for _ in range(count):
                played = host.stream(next(blocks))
                if waits:
                    wait_until(has_caught_up, "all pulses are run")
            return played

        play_blocks(100, waits=True)
        with pipeline.python_lock:
            play_blocks(1000, waits=False)
        wait_until(has_caught_up, "all pulses are run")
        played = play_blocks(200, waits=True)
        counters = live.statistics().counters
        assert_frames_add_up(live, len(x))
        assert not live.wait(0)
    assert counters.stalls == 0
    assert counters.frames_lost == 1000 * BLOCK - fields(live).in_ring_frames // BLOCK * BLOCK
    assert counters.frames_silent == counters.frames_skipped + counters.frames_lost
    np.testing.assert_array_equal(played, late_by(x, pipeline.delay_frames, len(x))[-BLOCK:])


def test_a_program_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ManualHost()
    compiled = cached_program(backend="numpy")
    with Live(compiled, Plan(RATE, block_frames=BLOCK), realtime=UNCHANGED, host=host) as live:

        def raise_value_error(slots):
            raise ValueError("no such thing")

        monkeypatch.setattr(live.pipeline.instances, "run", raise_value_error)
        host.stream(normal_noise(BLOCK, 1))
        with pytest.raises(ValueError, match="no such thing"):
            live.wait(60)


@pytest.fixture
def sound(tmp_path: Path) -> tuple[Path, Array]:
    """A second of noise in a file, and the noise."""
    path, x = tmp_path / "sound.wav", normal_noise(RATE, 1) / 4
    with AudioWriter(path, RATE, 1, "FLOAT") as file:
        file.write(x)
    return path, x


class BrokenThreadError(Exception):
    """An error of the user's own code."""


def end_well(live: Live) -> None:
    assert live.wait(60)


def end_early(live: Live) -> None:
    live.wait(0.02)


def fail(live: Live) -> None:
    raise BrokenThreadError


def close_twice(live: Live) -> None:
    live.close()
    live.close()


@engines
@pytest.mark.parametrize("end", [end_well, end_early, fail, close_twice])
def test_no_thread_and_no_descriptor_is_left_after_a_run(
    engine: str, end: Callable[..., Any], sound: tuple[Path, Array], tmp_path: Path
) -> None:
    host = FileHost(sound[0], tmp_path / "played.wav", pace=None if end is end_well else 1.0)
    with assert_nothing_left():
        try:
            with Live(
                cached_program(), Plan(RATE), EngineConfig(engine, records=True), UNCHANGED, host=host
            ) as live:
                names = {thread.name for thread in threading.enumerate()}
                assert {"pulse supervisor"} <= names
                assert ("pulse worker" in names) == (engine == "worker")
                recorder = live.record(tmp_path / "a.wav", tmp_path / "b.wav")
                while end is end_well and not live.wait(0.001):
                    live.outputs.take_ready()
                end(live)
        except BrokenThreadError:
            assert end is fail
        recorder.close()
    min_frames = RATE if end is end_well else 0
    assert min_frames <= live.statistics().counters.frames_in <= RATE + 2 * BLOCK, "the counters stay"


@pytest.mark.parametrize("lost_before", [False, True])
def test_a_stuck_device_keeps_the_memory_of_its_run(lost_before: bool) -> None:
    """The memory is kept for ever, and no other device is opened."""
    host = ManualHost()
    abandoned = [*live_module.abandoned_pipelines]
    refusal = pytest.raises(DeviceError, match=r"has not returned.* start this program again")
    with refusal if lost_before else nullcontext():
        live = Live(
            cached_program(), Plan(RATE, block_frames=BLOCK), realtime=UNCHANGED, reconnect="keep", host=host
        )
        with live:
            first = host.stream
            first.hangs = True
            if lost_before:
                first.request.finished()
                assert live.wait(WAIT_TIMEOUT_S)
    assert host.stream is first
    assert first.stopped == 1
    assert live_module.abandoned_pipelines == [*abandoned, live.pipeline]
    first(normal_noise(BLOCK, 1))
    live_module.abandoned_pipelines.remove(live.pipeline)
    live.pipeline.close()


@pytest.mark.parametrize("reconnect", ["keep", "reset"])
def test_a_stuck_callback_blocks_commands(reconnect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command would move the memory that it computes with; neither during the run nor after it."""
    monkeypatch.setattr(control_module, "ANSWER_TIMEOUT_S", 0.01)
    host, plan = ManualHost(), Plan(RATE, block_frames=BLOCK)
    live = Live(cached_program(), plan, EngineConfig("callback"), UNCHANGED, reconnect, host=host)
    with pytest.raises(DeviceError, match="has not returned"), live:
        host.stream.hangs = True
        host.stream.request.finished()
        live.wait(WAIT_TIMEOUT_S)
    with pytest.raises(PulseError, match="no pulse has ended"):
        live.control.reset()
    assert fields(live).load_count == 0
    live_module.abandoned_pipelines.remove(live.pipeline)
    live.pipeline.close()


def test_the_pipeline_of_a_worker_that_never_returns_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing twice leaves its pipeline alone both times."""
    abandoned, stop = [*live_module.abandoned_pipelines], Worker.stop
    monkeypatch.setattr(Worker, "stop", lambda worker: False)
    with Live(
        cached_program(), Plan(RATE, block_frames=BLOCK), realtime=UNCHANGED, host=ManualHost()
    ) as live:
        descriptors = open_descriptors()
        live.close()
        assert live.abandoned
        assert not descriptors - open_descriptors(), "what it waits for is not given back"
    assert live_module.abandoned_pipelines == [*abandoned, live.pipeline]
    assert stop(live.worker)
    live_module.abandoned_pipelines.remove(live.pipeline)
    live.pipeline.close()


def test_two_virtual_runs_at_once_keep_their_sound() -> None:
    """Both runs have streams of one program."""
    compiled, x = cached_program(filter_model), normal_noise(100 * BLOCK, 2)
    with runs(compiled) as (one_host, first), runs(compiled, block=100) as (other_host, other):
        played = [(one_host.run(a[:, :1]), other_host.run(a[:, 1:], 100)) for a in np.split(x, 20)]
    for number, live in enumerate((first, other)):
        output = np.concatenate([pair[number] for pair in played])
        expected = played_by(compiled, x[:, number : number + 1], "y")
        np.testing.assert_array_equal(output, late_by(expected, live.delay.frames, len(x)))


@engines
def test_two_runs_at_once_in_threads_keep_their_sound(
    engine: str, sound: tuple[Path, Array], tmp_path: Path
) -> None:
    compiled, path = cached_program(filter_model), sound[0]
    hosts = [FileHost(path, tmp_path / f"{number}.wav", None) for number in range(2)]
    with (
        assert_nothing_left(),
        Live(compiled, Plan(RATE), EngineConfig(engine), UNCHANGED, host=hosts[0]) as first_live,
        Live(compiled, Plan(RATE), EngineConfig(engine), UNCHANGED, host=hosts[1]) as other,
    ):
        assert first_live.wait(60)
        assert other.wait(60)
    first, second = (soundfile.read(tmp_path / f"{number}.wav", dtype="float32")[0] for number in range(2))
    assert len(first) == len(sound[1]) + first_live.delay.frames
    np.testing.assert_array_equal(first, second)


def test_a_host_has_one_run() -> None:
    host, live = virtual_run(cached_program())
    with live:
        second = Live(cached_program(), Plan(RATE), realtime=UNCHANGED, host=host)
        with pytest.raises(InputError, match="this virtual host has a run already"), second:
            pass
        assert len(host.run(normal_noise(BLOCK, 1))), "the first continues"
    assert host.streams == ()


def test_a_run_is_entered_once() -> None:
    _, live = virtual_run(cached_program())
    with live:
        pass
    with pytest.raises(InputError, match="entered once; make another one"), live:
        pass


@pytest.mark.parametrize(
    ("device", "plan", "message"),
    [
        ({"refuses": "somebody else has it"}, {}, "virtual: cannot be opened, somebody else has it"),
        ({"rates_hz": (48000,)}, {"device_rate_hz": 44100}, "does not run at 44100 Hz but at 48000"),
        ({"present": False}, {}, "no .*input device"),
        ({}, {"input": "usb"}, "usb"),
    ],
)
def test_a_refused_device_leaves_the_host_free(
    device: dict[str, Any], plan: dict[str, Any], message: str
) -> None:
    host = VirtualHost(VirtualDevice(**{"rate_hz": RATE} | device))
    with (
        assert_nothing_left(),
        pytest.raises((DeviceError, InputError), match=message),
        Live(cached_program(), Plan(RATE, **plan), realtime=UNCHANGED, host=host),
    ):
        pass
    assert host.streams == ()
    host.devices = (VirtualDevice(rate_hz=RATE),)
    with Live(cached_program(), Plan(RATE), realtime=UNCHANGED, host=host):
        assert len(host.streams) == 1


@engines
@pytest.mark.parametrize(
    "error",
    [DeviceError("it does not start"), KeyboardInterrupt()],
    ids=["a device that does not start", "Ctrl-C"],
)
def test_an_error_while_a_device_starts_closes_it(
    engine: str, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    """The error is a device that does not start, or Ctrl-C meanwhile."""
    host = ManualHost()

    def start(_):
        raise error

    monkeypatch.setattr("tests.streaming.live.manual_device.ManualStream.start", start)
    live = Live(cached_program(), Plan(RATE), EngineConfig(engine), UNCHANGED, host=host)
    with assert_nothing_left(), pytest.raises(type(error)), live:
        pass
    assert host.stream.stopped == 1


def test_many_runs_leave_no_thread_and_no_descriptor(sound: tuple[Path, Array]) -> None:
    with assert_nothing_left():
        for _ in range(8):
            with Live(
                cached_program(), Plan(RATE), realtime=UNCHANGED, host=FileHost(sound[0], None, None)
            ) as live:
                assert live.wait(60)
