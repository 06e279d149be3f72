"""Recordings have the input and the output frame by frame, and both files begin at the same moment."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from pulse.facts import Array
from streaming.audio.files import AudioWriter
from streaming.live import EngineConfig, Live, Plan
from streaming.live.config import ENGINES
from streaming.live.file_host import FileHost
from streaming.realtime.realtime_settings import UNCHANGED
from streaming.virtual.host import VirtualDevice
from tests.noise import normal_noise
from tests.streaming.file_size_limit import limit_files
from tests.streaming.live.manual_device import HaltedFile, assert_nothing_left, ramp
from tests.streaming.live.runs import RATE, fields, late_by, runs
from tests.streaming.models import cached_program
from tests.streaming.platform_marks import linux
from tests.waiting import wait_until

BLOCK = 160


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """The paths of the recordings of input and output."""
    return tmp_path / "heard.wav", tmp_path / "played.wav"


def read_sounds(paths: list[Path] | tuple[Any, ...]) -> list[Array]:
    """The samples [frames, channels] of both recordings."""
    return [soundfile.read(path, dtype="float32", always_2d=True)[0] for path in paths]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", [BLOCK, 333])
def test_recordings_have_the_input_and_the_output(paths: tuple[Path, Path], engine: str, block: int) -> None:
    """A recording holds the blocks between start and end, with the silence of pulses that were not ready."""
    x = normal_noise(90 * block, 2)
    device = VirtualDevice(inputs=2, outputs=2, rate_hz=RATE)
    with runs(cached_program(), block=block, device=device, channels="each", engine=engine) as (host, live):
        host.run(x[: 20 * block])
        recorder = live.record(*paths)
        played = [host.run(x[20 * block : 40 * block])]
        recorder.write()
        host.stall(0.1)
        for piece in np.split(x[40 * block : 70 * block], 10):
            played.append(host.run(piece))
            recorder.write()
        recorder.close()
        host.run(x[70 * block :])
        if engine == "worker":
            assert live.statistics().counters.frames_silent > 0
    frames_in, recorded = read_sounds(paths)
    np.testing.assert_array_equal(frames_in, x[20 * block : 70 * block])
    np.testing.assert_array_equal(recorded, np.concatenate(played))
    assert (recorder.frames_lost, recorder.problems) == (0, ())
    assert soundfile.info(paths[0]).samplerate == RATE


def test_both_files_are_aligned_after_frames_were_lost(paths: tuple[Path, Path]) -> None:
    """The frames are lost before the recording begins."""
    x = ramp(1400 * BLOCK)
    with runs(cached_program()) as (host, live):
        host.run(x[:BLOCK])
        host.stall(10)
        host.run(x[BLOCK : 1200 * BLOCK])
        assert live.statistics().counters.frames_lost > 0
        recorder = live.record(*paths)
        host.run(x[1200 * BLOCK :])
        recorder.close()
        delay = live.delay.frames
    recorded, played = read_sounds(paths)
    np.testing.assert_array_equal(recorded, x[1200 * BLOCK :])
    np.testing.assert_array_equal(played[delay:], recorded[:-delay])


@pytest.mark.parametrize("margin", [0, 1000])
def test_frames_lost_on_a_slow_disk_are_silent_and_counted(paths: tuple[Path, Path], margin: int) -> None:
    """Later frames keep their positions."""
    x = ramp(1000 * BLOCK)
    with runs(cached_program()) as (host, live):
        recorder = live.record(*paths)
        host.run(x[: 100 * BLOCK])
        recorder.write()
        ring = fields(live).in_ring_frames
        frames = (ring * 2 + margin) // BLOCK * BLOCK
        host.run(x[100 * BLOCK : 100 * BLOCK + frames])
        recorder.write()
        end = 100 * BLOCK + frames + 50 * BLOCK
        host.run(x[100 * BLOCK + frames : end])
        recorder.close()
        delay = live.delay.frames
    recorded, played = read_sounds(paths)
    assert len(recorded) == len(played) == end
    missing = recorded[:, 0] == 0
    gap = np.flatnonzero(missing)
    assert (gap[0], len(gap)) == (100 * BLOCK, gap[-1] - gap[0] + 1), "one gap, where it was too slow"
    assert recorder.frames_lost == len(gap) + (np.flatnonzero(played[:, 0] == 0) >= delay).sum()
    assert 0 < len(gap) <= frames - ring // 2
    np.testing.assert_array_equal(recorded[~missing], x[:end][~missing])
    is_played = played[:, 0] != 0
    np.testing.assert_array_equal(played[is_played], late_by(x, delay, end)[is_played])


@linux
def test_a_full_disk_ends_the_recording(paths: tuple[Path, Path]) -> None:
    """The end is reported, written samples are kept, and playing continues."""
    x = normal_noise(200 * BLOCK, 1)
    with runs(cached_program()) as (host, live):
        recorder = live.record(*paths)
        with limit_files(50_000):
            for piece in np.split(x, 20):
                host.run(piece)
                recorder.write()
        delay = live.delay.frames
        for problem, path in zip(recorder.problems, paths, strict=True):
            assert str(problem).startswith(f"{path}: cannot be written (")
        np.testing.assert_array_equal(host.run(x), np.concatenate([x[-delay:], x[:-delay]]))
        recorder.close()
    recorded, played = read_sounds(paths)
    assert 10_000 < len(recorded) < 12_500
    np.testing.assert_array_equal(recorded, x[: len(recorded)])
    np.testing.assert_array_equal(played, late_by(x, delay, len(played)))


def test_a_removed_folder_is_an_error_of_the_run(paths: tuple[Path, Path]) -> None:
    """The recorder is still open: the run closes it and raises its error."""
    folder = paths[0].parent / "folder"
    folder.mkdir()
    with (
        pytest.raises(InputError, match=r"heard\.wav: cannot be written"),
        runs(cached_program()) as (host, live),
    ):
        live.record(folder / "heard.wav")
        host.run(normal_noise(BLOCK, 1))
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_a_removed_folder_of_one_file_keeps_the_other(paths: tuple[Path, Path]) -> None:
    folder = paths[0].parent / "folder"
    folder.mkdir()
    x = normal_noise(10 * BLOCK, 1)
    with runs(cached_program()) as (host, live):
        recorder = live.record(folder / "heard.wav", paths[1])
        played = host.run(x)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        with pytest.raises(InputError, match=r"heard\.wav: cannot be written"):
            recorder.close()
        assert [str(problem).split(":")[0] for problem in recorder.problems] == [str(folder / "heard.wav")]
    np.testing.assert_array_equal(read_sounds(paths[1:])[0], played)


@pytest.mark.parametrize("expected", [0, 1])
def test_one_of_both_files_is_recorded(paths: tuple[Path, Path], expected: int) -> None:
    x = normal_noise(10 * BLOCK, 1)
    with runs(cached_program()) as (host, live):
        recorder = live.record(**{["input", "output"][expected]: paths[expected]})
        played = host.run(x)
        recorder.close()
        recorder.close()
    (recorded,) = read_sounds([paths[expected]])
    np.testing.assert_array_equal(recorded, [x, played][expected])
    assert not paths[1 - expected].exists()


def test_two_recorders_write_side_by_side(paths: tuple[Path, Path]) -> None:
    """The second recorder begins while the first one is open."""
    x = normal_noise(30 * BLOCK, 1)
    with runs(cached_program()) as (host, live):
        first = live.record(paths[0])
        host.run(x[: 10 * BLOCK])
        second = live.record(paths[1])
        host.run(x[10 * BLOCK :])
        first.close()
        second.close()
    whole, part = read_sounds(paths)
    np.testing.assert_array_equal(whole, x)
    np.testing.assert_array_equal(part, x[10 * BLOCK :])


def test_a_recording_continues_after_the_device_was_away(paths: tuple[Path, Path]) -> None:
    """The recording skips the time when the device was away."""
    x = normal_noise(60 * BLOCK, 1)
    with runs(cached_program(), reconnect="keep") as (host, live):
        recorder = live.record(*paths)
        played = [host.run(x[: 20 * BLOCK])]
        host.devices[0].present = False
        host.advance(3)
        host.devices[0].present = True
        host.advance(1)
        played.append(host.run(x[20 * BLOCK :]))
        recorder.close()
    for recorded, expected in zip(read_sounds(paths), (x, np.concatenate(played))):
        np.testing.assert_array_equal(recorded, expected)


def test_recordings_of_two_devices_are_kept_apart(paths: tuple[Path, Path]) -> None:
    devices = [VirtualDevice("a", 1, 0, RATE), VirtualDevice("b", 0, 1, RATE)]
    x = normal_noise(40 * BLOCK, 1)
    with runs(cached_program(), device=devices) as (host, live):
        host.run(x[: 10 * BLOCK])
        recorder = live.record(*paths)
        played = host.run(x[10 * BLOCK :])
        recorder.close()
    for recorded, expected in zip(read_sounds(paths), (x[10 * BLOCK :], played)):
        np.testing.assert_array_equal(recorded, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_thread_writes_the_recording_of_a_run(
    paths: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """A thread writes while a file plays; both recordings are aligned, wherever they began."""
    x = normal_noise(3 * RATE, 1) / 4
    with AudioWriter(tmp_path / "sound.wav", RATE, 1, "FLOAT") as file:
        file.write(x)
    host, halt = FileHost(tmp_path / "sound.wav", pace=10.0), HaltedFile(monkeypatch, 200)
    with (
        assert_nothing_left(),
        Live(cached_program(), Plan(RATE), EngineConfig(engine), UNCHANGED, host=host) as live,
    ):
        wait_until(lambda: fields(live).frames_in, "the first frames")
        live.record(*paths)
        halt.released.set()
        assert "pulse recorder" in {thread.name for thread in threading.enumerate()}
        assert live.wait(60)
    recorded, played = read_sounds(paths)
    delay, counters = live.delay.frames, live.statistics().counters
    start = counters.frames_in - len(recorded)
    assert 0 < start < len(x)
    silence = np.zeros((RATE, 1), np.float32)
    np.testing.assert_array_equal(recorded, np.concatenate([x, silence])[start : start + len(recorded)])
    assert counters.frames_silent == 0, "each block of the file waits for the worker"
    np.testing.assert_array_equal(played[delay:], recorded[: len(played) - delay])


def test_an_interrupted_close_still_completes_both_files(
    paths: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run waits for the thread that completes them."""
    x = normal_noise(RATE // 2, 1)
    with AudioWriter(tmp_path / "sound.wav", RATE, 1, "FLOAT") as file:
        file.write(x)
    closes, continues = AudioWriter.close, threading.Event()

    def slow(writer):
        continues.wait(60)
        closes(writer)

    def interrupt(_):
        raise KeyboardInterrupt

    host, halt = FileHost(tmp_path / "sound.wav", pace=10.0), HaltedFile(monkeypatch)
    with assert_nothing_left(), Live(cached_program(), Plan(RATE), realtime=UNCHANGED, host=host) as live:
        recorder = live.record(*paths)
        halt.released.set()
        live.wait(60)
        monkeypatch.setattr(AudioWriter, "close", slow)
        with monkeypatch.context() as waiting, pytest.raises(KeyboardInterrupt):
            waiting.setattr(threading.Thread, "join", interrupt)
            recorder.close()
        assert not paths[0].exists()
        continues.set()
    recorded, _ = read_sounds(paths)
    np.testing.assert_array_equal(recorded[: len(x)], x)
    assert not recorder.problems


def test_invalid_recorder_arguments_are_refused(paths: tuple[Path, Path], tmp_path: Path) -> None:
    with assert_nothing_left(), runs(cached_program(), play=False) as (_, live):
        with pytest.raises(
            InputError, match=r"played\.wav: there is no output to record: the run plays nothing"
        ):
            live.record(*paths)
        with pytest.raises(InputError, match=r"unknown audio format '\.txt'"):
            live.record(tmp_path / "heard.txt")
        with pytest.raises(InputError, match="cannot be written"):
            live.record(Path("/no/such/folder/heard.wav"))
    with (
        assert_nothing_left(),
        runs(cached_program()) as (_, live),
        pytest.raises(InputError, match="unknown audio format"),
    ):
        live.record(paths[0], tmp_path / "played.txt")
    assert not list(tmp_path.iterdir()), "nothing is left"
