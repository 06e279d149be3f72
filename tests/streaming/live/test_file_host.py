"""An audio file in place of the devices: all of it is processed and written, and the run ends well."""

import shutil
import threading
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError, PulseError
from pulse.facts import Array
from pulse.program.program import Program
from streaming.audio.channels import Channels
from streaming.audio.files import AudioWriter
from streaming.errors import DeviceError
from streaming.live import EngineConfig, Live, Plan
from streaming.live.file_host import NO_DEVICE_NAME, FileHost, FileStream
from streaming.realtime.realtime_settings import UNCHANGED
from tests.noise import normal_noise
from tests.streaming.file_size_limit import limit_files
from tests.streaming.live.manual_device import HaltedFile, assert_nothing_left
from tests.streaming.live.runs import (
    RATE,
    delayed_model,
    engines,
    late_by,
    meter_model,
    played_by,
    session_outputs,
    sum_model,
)
from tests.streaming.models import cached_program, filter_model, limited_model
from tests.waiting import WAIT_TIMEOUT_S

PLAN, BEHAVIOUR = Plan(RATE), EngineConfig()


def write_sound(path: Path, x: Array, rate_hz: int = RATE, encoding: str = "FLOAT") -> Path:
    """An audio file of [frames, channels]."""
    with AudioWriter(path, rate_hz, x.shape[1], encoding) as file:
        file.write(x)
    return path


def read_sound(path: Path) -> Array:
    return soundfile.read(path, dtype="float32", always_2d=True)[0]


def play_to_the_end(
    host: FileHost, program: Program, plan: Plan = PLAN, behaviour: EngineConfig = BEHAVIOUR
) -> Live:
    """Run to the end, which must leave no error, thread or descriptor."""
    with assert_nothing_left():
        with Live(program, plan, behaviour, UNCHANGED, host=host) as live:
            assert live.wait(20), "it has not ended"
        assert live.watchdog.error is None
    return live


@engines
@pytest.mark.parametrize("frames", [1, 159, 160, 3333, 16001])
@pytest.mark.parametrize("block", [None, 100, 1000])
def test_the_whole_input_is_written_with_its_delay(
    tmp_path: Path, engine: str, frames: int, block: int | None
) -> None:
    """The file begins with the first block, so it is longer by the delay."""
    compiled, x = cached_program(filter_model), normal_noise(frames, 1) / 50
    host = FileHost(write_sound(tmp_path / "in.wav", x), tmp_path / "out.wav", pace=None)
    live = play_to_the_end(host, compiled, Plan(RATE, block_frames=block), EngineConfig(engine, records=True))
    delay, counters = live.delay.frames, live.statistics().counters
    padded = np.concatenate([x, np.zeros((2 * delay + 2000, 1), np.float32)])
    np.testing.assert_array_equal(
        read_sound(tmp_path / "out.wav"), late_by(played_by(compiled, padded, "y"), delay, frames + delay)
    )
    assert (counters.frames_silent, counters.frames_lost, counters.stalls) == (0, 0, 0)
    outputs = live.outputs.flush()[0]["y"]
    np.testing.assert_array_equal(outputs[0, :frames], played_by(compiled, padded, "y")[:frames, 0])


@pytest.mark.parametrize(
    "form", [(meter_model,), (delayed_model,), (sum_model, 8), (meter_model, 160, "numpy")]
)
def test_without_playing_a_run_gives_all_outputs(tmp_path: Path, form: tuple[Any, ...]) -> None:
    """The file goes through to its last frame and no further, and all outputs come, however many."""
    compiled, x = cached_program(*form), normal_noise(RATE + 77, 1)
    host = FileHost(write_sound(tmp_path / "in.wav", x), pace=None)
    with Live(compiled, Plan(RATE, play=False), EngineConfig(records=True), UNCHANGED, host=host) as live:
        parts = []
        while not live.wait(0.005):
            parts.append(live.outputs.take_ready()[0])
    parts.append(live.outputs.flush()[0])
    assert live.statistics().counters.frames_in == len(x)
    assert live.outputs.pulses_lost == 0
    for name, expected in session_outputs(compiled, x)[0].items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts], -1), expected)


@pytest.mark.parametrize("pace", [1.0, 8.0])
def test_blocks_are_played_at_their_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pace: float
) -> None:
    """Block n waits until n blocks have lasted since the start, however late those before it were.

    The clock stands still, so each wait is known. A block waits for the worker here, so nothing is silent.
    """
    x, wait, waits_s = normal_noise(RATE // 2, 1) / 4, FileStream.wait_until, []

    class Stops(threading.Event):
        def wait(self, timeout):
            waits_s.append(timeout)
            return self.is_set()

    def wait_and_compute(stream, due_s):
        stream.stops = stops
        wait(stream, due_s)
        wait(stream, None)

    stops = Stops()
    monkeypatch.setattr(FileStream, "wait_until", wait_and_compute)
    host = FileHost(
        write_sound(tmp_path / "in.wav", x), tmp_path / "out.wav", pace=pace, monotonic=lambda: 100.0
    )
    live = play_to_the_end(host, cached_program())
    assert len(waits_s) >= len(x) // 160
    np.testing.assert_allclose(waits_s, 0.01 / pace * np.arange(1, len(waits_s) + 1), atol=1e-9)
    statistics, delay = live.statistics(), live.delay.frames
    written = read_sound(tmp_path / "out.wav")
    np.testing.assert_array_equal(written, late_by(x, delay, len(x) + delay))
    assert statistics.counters.frames_silent == 0
    assert statistics.interval.count == len(waits_s) - 1


def test_a_run_that_waits_ends_later_by_the_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the sound is written, although 50 of its blocks were late."""
    x, wait, numbers = normal_noise(RATE, 1) / 4, FileStream.wait_until, count()

    def hold_the_turn(stream, due_s):
        """Keep the worker from computing for 50 blocks of the file."""
        match next(numbers):
            case 20:
                live.pipeline.python_lock.acquire()
            case 70:
                live.pipeline.python_lock.release()
        wait(stream, due_s)

    monkeypatch.setattr(FileStream, "wait_until", hold_the_turn)
    host = FileHost(write_sound(tmp_path / "in.wav", x), tmp_path / "out.wav", pace=8.0)
    live = Live(
        cached_program(backend="numpy"), Plan(RATE), EngineConfig(policy="wait"), UNCHANGED, host=host
    )
    with live:
        assert live.wait(60)
    counters, written = live.statistics().counters, read_sound(tmp_path / "out.wav")
    assert counters.frames_silent > 0.2 * RATE
    delay_growth = counters.frames_silent - counters.frames_lost
    assert len(written) == len(x) + live.pipeline.delay_frames + delay_growth
    np.testing.assert_array_equal(written[written != 0], x[x != 0])


@pytest.mark.parametrize("rate_hz", [48000, 44100, 8000])
def test_a_file_of_another_rate_is_resampled(tmp_path: Path, rate_hz: int) -> None:
    """The file has the rate of a device; a click comes out where it belongs."""
    x = np.zeros((rate_hz // 2, 1), np.float32)
    x[1000] = 0.5
    host = FileHost(write_sound(tmp_path / "in.wav", x, rate_hz), tmp_path / "out.wav", pace=None)
    live = play_to_the_end(host, cached_program())
    written = read_sound(tmp_path / "out.wav")
    assert soundfile.info(tmp_path / "out.wav").samplerate == rate_hz
    assert len(written) == len(x) + live.delay.frames
    assert abs(int(np.argmax(np.abs(written))) - 1000 - live.delay.frames) <= rate_hz / RATE + 1


@pytest.mark.parametrize("channels", ["mix", "0", "1", "each"])
def test_a_run_takes_the_chosen_channels_of_a_file(tmp_path: Path, channels: str) -> None:
    compiled, x = cached_program(filter_model), normal_noise(4000, 2) / 50
    host = FileHost(write_sound(tmp_path / "in.wav", x), tmp_path / "out.wav", pace=None)
    choice = Channels.parse(channels)
    live = play_to_the_end(host, compiled, Plan(RATE, channels=choice))
    delay = live.delay.frames
    expected = played_by(compiled, choice.select(np.concatenate([x, np.zeros((3000, 2), np.float32)])), "y")
    expected = np.repeat(expected, 2 // expected.shape[1], 1)
    np.testing.assert_array_equal(read_sound(tmp_path / "out.wav"), late_by(expected, delay, len(x) + delay))


@pytest.mark.parametrize(
    ("source", "target", "encoding", "encoding_kept"),
    [
        ("in.wav", "out.wav", "PCM_24", "PCM_24"),
        ("in.flac", "out.flac", "PCM_24", "PCM_24"),
        ("in.wav", "out.flac", "FLOAT", "PCM_24"),
        ("in.ogg", "out.wav", "VORBIS", "PCM_16"),
    ],
)
def test_output_files_have_the_format_of_the_input(
    tmp_path: Path, source: str, target: str, encoding: str, encoding_kept: str
) -> None:
    """The encoding is kept if the output's format has it."""
    x = np.sin(np.arange(8000) / 20).astype(np.float32)[:, None] / 4
    host = FileHost(write_sound(tmp_path / source, x, encoding=encoding), tmp_path / target, pace=None)
    delay = play_to_the_end(host, cached_program()).delay.frames
    assert soundfile.info(tmp_path / target).subtype == encoding_kept
    np.testing.assert_allclose(
        read_sound(tmp_path / target)[delay:], read_sound(tmp_path / source), atol=3.1e-5
    )


def test_the_setup_names_both_files(tmp_path: Path) -> None:
    source = write_sound(tmp_path / "in.flac", normal_noise(800, 1) / 9, encoding="PCM_16")
    for target, name in ((tmp_path / "out.wav", str(tmp_path / "out.wav")), (None, NO_DEVICE_NAME)):
        live = play_to_the_end(FileHost(source, target, None), cached_program())
        assert (live.setup.input, live.setup.output) == (str(source), name)
        assert not live.pipeline.stream_config.two_clocks, "a file has one clock"
    live = Live(cached_program(), Plan(RATE, play=False), realtime=UNCHANGED, host=FileHost(source))
    assert live.setup.output is None


def test_a_run_stopped_early_keeps_the_played_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal_noise(20 * RATE, 1) / 4
    host, halt = (
        FileHost(write_sound(tmp_path / "in.wav", x), tmp_path / "out.wav"),
        HaltedFile(monkeypatch, 10),
    )
    with assert_nothing_left(), Live(cached_program(), Plan(RATE), realtime=UNCHANGED, host=host) as live:
        assert halt.reached.wait(WAIT_TIMEOUT_S)
        assert not live.wait(0)
    written, delay = read_sound(tmp_path / "out.wav"), live.delay.frames
    assert delay < len(written) == live.statistics().counters.frames_out < RATE
    assert live.statistics().counters.frames_silent == 0
    np.testing.assert_array_equal(written[delay:], x[: len(written) - delay])


@pytest.mark.parametrize("early", [False, True])
def test_a_full_disk_keeps_the_file_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    """The run continues to its end, or until it is stopped, and then reports the full disk."""
    x, plan = normal_noise(RATE, 1) / 4, Plan(RATE, block_frames=100)
    play_to_the_end(
        FileHost(write_sound(tmp_path / "in.wav", x), pace=None), cached_program(), plan
    )  # what it compiles fits
    halt = HaltedFile(monkeypatch, 30 if early else -1)
    host = FileHost(tmp_path / "in.wav", tmp_path / "out.wav", pace=1.0 if early else None)
    full = r"out\.wav: cannot be written \(File too large\); free some space"
    live = Live(cached_program(), plan, realtime=UNCHANGED, host=host)
    with assert_nothing_left(), limit_files(10_000), pytest.raises(InputError, match=full) as refusal, live:
        assert halt.reached.wait(WAIT_TIMEOUT_S) if early else live.wait(60)
    assert refusal.value is host.problem
    written, delay, frames_in = (
        read_sound(tmp_path / "out.wav"),
        live.delay.frames,
        live.statistics().counters.frames_in,
    )
    assert 2000 < len(written) < 2500
    assert 2500 < frames_in < len(x) if early else frames_in >= len(x)
    assert live.statistics().counters.frames_silent == 0
    np.testing.assert_array_equal(written, late_by(x, delay, len(written)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.wav", "out.wav"]


def test_a_removed_folder_is_reported_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run of the host starts without the error."""
    folder = tmp_path / "folder"
    folder.mkdir()
    host, halt = (
        FileHost(write_sound(tmp_path / "in.wav", normal_noise(RATE, 1)), folder / "out.wav"),
        HaltedFile(monkeypatch, 5),
    )
    message = r"out\.wav: cannot be written \(No such file"
    live = Live(cached_program(), Plan(RATE), realtime=UNCHANGED, host=host)
    with assert_nothing_left(), pytest.raises(InputError, match=message) as refusal, live:
        assert halt.reached.wait(WAIT_TIMEOUT_S)
        assert not live.wait(0)
        shutil.rmtree(folder)
    assert refusal.value is host.problem
    folder.mkdir()
    with Live(cached_program(), Plan(RATE), realtime=UNCHANGED, host=host):
        assert host.problem is None


def test_a_damaged_file_ends_the_run_and_writes_nothing(tmp_path: Path) -> None:
    x = normal_noise(RATE, 1)
    x[12345] = np.nan
    host = FileHost(write_sound(tmp_path / "in.wav", x), tmp_path / "out.wav", pace=None)
    with pytest.raises(InputError, match=r"in\.wav: NaN at sample 12345"):
        play_to_the_end(host, cached_program())
    assert [path.name for path in tmp_path.iterdir()] == ["in.wav"]


def test_errors_while_stopping_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FileHost(write_sound(tmp_path / "in.wav", normal_noise(RATE, 1)), tmp_path / "out.wav")
    close = AudioWriter.__exit__

    def close_and_raise(*parts):
        close(*parts)
        raise InputError("out.wav: cannot be written (no space left)")

    monkeypatch.setattr(AudioWriter, "__exit__", close_and_raise)
    with pytest.raises(InputError, match="no space left"), Live(cached_program(), Plan(RATE), host=host):
        pass


def test_the_limit_of_a_model_ends_the_run_with_an_error(tmp_path: Path) -> None:
    host = FileHost(write_sound(tmp_path / "in.wav", normal_noise(2000, 1)), pace=None)
    with pytest.raises(PulseError, match="has reached its limit of 1000 frames"):
        play_to_the_end(host, cached_program(limited_model))
    host = FileHost(write_sound(tmp_path / "short.wav", normal_noise(1000, 1)), pace=None)
    live = play_to_the_end(
        host, cached_program(limited_model), Plan(RATE, play=False), EngineConfig(records=True)
    )
    assert live.outputs.flush()[0]["y"].shape == (1, 1000)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("no.wav", {}, r"no\.wav: no such file"),
        ("in.wav", {"target": Path("out.txt")}, r"unknown audio format '\.txt'"),
        ("in.wav", {"target": Path("in.wav")}, r"in\.wav: is the input; write to another file"),
        ("in.wav", {"pace": 0.0}, "a pace of 0.0: give a positive number, or None"),
        ("in.wav", {"pace": float("nan")}, "a pace of nan"),
    ],
)
def test_invalid_files_and_paces_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, options: dict[str, Any], message: str
) -> None:
    write_sound(tmp_path / "in.wav", normal_noise(100, 1))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        FileHost(Path(source), **options)


@pytest.mark.parametrize(
    ("plan", "target", "kind", "message"),
    [
        (Plan(RATE, input="usb"), None, InputError, 'replaces the devices: omit input="usb"'),
        (Plan(RATE, output=1), None, InputError, "replaces the devices: omit output=1"),
        (Plan(RATE, device_rate_hz=48000), None, DeviceError, "has 16000 Hz, but 48000 Hz are required"),
        (Plan(RATE), "folder/out.wav", InputError, "cannot be written"),
    ],
    ids=["an input device", "an output device", "another rate", "a folder that is not there"],
)
def test_plans_that_do_not_suit_a_file_are_refused(
    tmp_path: Path, plan: Plan, target: str | None, kind: type[PulseError], message: str
) -> None:
    """Threads and descriptors are given back."""
    source = write_sound(tmp_path / "in.wav", normal_noise(100, 1))
    host = FileHost(source, None if target is None else tmp_path / target)
    with assert_nothing_left(), pytest.raises(kind, match=message), Live(cached_program(), plan, host=host):
        pass
