"""``pulse run --live`` keeps and reports its results, however it ends."""

import csv
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from signal import Signals
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from streaming.audio.frame_formats import NpyFormat
from streaming.audio.target import Target
from streaming.cli import signals
from streaming.cli.live import command
from streaming.cli.live.frames_writer import FramesWriter
from streaming.errors import DeviceError
from streaming.files.partial import PartialFile
from streaming.live import live as live_module
from streaming.live.outputs import Outputs
from streaming.live.recorder import Recorder
from streaming.live.worker import Worker
from streaming.stats.writer import StatsWriter
from tests.streaming.command import pulse, tone, voice
from tests.streaming.live.manual_device import HaltedFile
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("working_folder", "usual_signals")


@pytest.fixture
def all_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the file until a recording starts."""
    halt, record = HaltedFile(monkeypatch), live_module.Live.record

    def recorder_of(*arguments):
        recorder = record(*arguments)
        halt.released.set()
        return recorder

    monkeypatch.setattr(live_module.Live, "record", recorder_of)


def live(*arguments: Path | str, code: int) -> Any:
    return pulse("run", *arguments, "--live", "--quiet", "--backend", "numpy", code=code)


def live_levels(*arguments: Path | str, code: int) -> Any:
    """Run a small model live on ``in.wav`` and a block more; it plays nothing and has 100 frames per second."""
    return live(voice("model.onnx"), "in.wav", "--output", "level", *arguments, code=code)


def write_half_a_second() -> None:
    soundfile.write("in.wav", np.zeros(4000, np.float32), 8000)


@pytest.fixture
def run_ended_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_is_recorded: None
) -> Callable[..., Any]:
    """A function that runs half a second and ends the run by a signal or an exception."""
    write_half_a_second()
    follow = command.follow_run

    def ends(end, code):
        def follow_and_end(*parts):
            follow(*parts)
            if isinstance(end, Exception):
                raise end
            signal.raise_signal(end)

        monkeypatch.setattr(command, "follow_run", follow_and_end)
        files = ("--frames", "f.csv", "--stats", "s.jsonl", "--record-in", "r.wav")
        return live_levels(*files, code=code)

    return ends


@pytest.mark.parametrize(
    "end", [*signals.SIGNALS, pytest.param(DeviceError("the cable is out"), id="failure")]
)
def test_an_ended_run_keeps_and_reports_its_results(
    run_ended_by: Callable[..., Any], tmp_path: Path, end: DeviceError | Signals
) -> None:
    failed = isinstance(end, DeviceError)
    result = run_ended_by(end, 2 if failed else 0)
    assert "4,080 in" in result.stdout
    assert result.stderr == ("error: the cable is out\n" if failed else "")
    with (tmp_path / "f.csv").open() as file:
        assert len(list(csv.reader(file))) > 40
    assert soundfile.info(tmp_path / "r.wav").frames == 4080
    assert '"line":"summary"' in (tmp_path / "s.jsonl").read_text().splitlines()[-1]


def signalled_after(
    monkeypatch: pytest.MonkeyPatch,
    number: Signals,
    owner: type,
    name: str,
    when: Callable[..., Any] = lambda: True,
) -> None:
    """Send a signal after each call of a method for which ``when`` is true."""
    function = getattr(owner, name)

    def call_and_signal(*arguments):
        result = function(*arguments)
        if when():
            signal.raise_signal(number)
        return result

    monkeypatch.setattr(owner, name, call_and_signal)


@pytest.mark.parametrize("number", signals.SIGNALS)
def test_a_signal_inside_of_a_write_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_is_recorded: None, number: Signals
) -> None:
    """The signal ends the run soon, with every frame; later ones, while files are finished, change nothing."""
    x = tone(8000, 30.0).astype(np.float32)
    soundfile.write("in.wav", x, 8000, subtype="FLOAT")
    pieces = count(1)
    signalled_after(monkeypatch, number, PartialFile, "append", lambda: next(pieces) == 3)
    for owner, name in (
        (Recorder, "close"),
        (StatsWriter, "close"),
        (Outputs, "flush"),
        (NpyFormat, "complete"),
    ):
        signalled_after(monkeypatch, number, owner, name)
    model = voice(tmp_path / "model.onnx")
    files = ("--frames", "f.npy", "--record-in", "r.wav", "--stats", "s.jsonl")
    result = live(model, "in.wav", "--output", "same", *files, "--json", code=0)
    assert result.stderr == ""
    frames_in = json.loads(result.stdout)["statistics"]["counters"]["frames_in"]
    frames, recorded = np.load("f.npy")[0, 0], soundfile.read("r.wav", dtype="float32")[0]
    assert 0 < len(recorded) <= len(frames) < len(x)
    assert frames_in <= len(frames)
    np.testing.assert_array_equal(frames, x[: len(frames)])
    np.testing.assert_array_equal(recorded, x[: len(recorded)])
    assert '"line":"summary"' in (tmp_path / "s.jsonl").read_text().splitlines()[-1]
    assert {path.name for path in tmp_path.iterdir()} == {"in.wav", "model.onnx", "f.npy", "r.wav", "s.jsonl"}


@pytest.mark.parametrize("shows", [True, False])
def test_files_are_complete_after_the_terminal_is_closed(tmp_path: Path, shows: bool) -> None:
    """All files are complete, though the report has no reader."""
    soundfile.write("in.wav", tone(8000, 30.0), 8000)
    files = ("--frames", "f.csv", "--record-in", "r.wav", "--stats", "s.jsonl")
    command = ["pulse", "run", str(voice("model.onnx")), "in.wav", "--output", "level", "--live", *files]
    command += ["--backend", "numpy"]
    command += [] if shows else ["--quiet"]
    code = (
        "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        f"sys.argv = {command!r}; from streaming.cli import main; main()"
    )
    terminal, inside = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        env=environment,
    )
    os.close(inside)
    os.set_blocking(terminal, False)

    def has_recorded() -> bool:
        assert process.poll() is None
        with suppress(BlockingIOError):
            os.read(terminal, 1 << 20)  # nothing waits for a reader
        return any(part.stat().st_size > 8000 for part in tmp_path.glob(".r-*.wav"))

    wait_until(has_recorded, "half a second of sound is recorded")
    os.close(terminal)
    process.wait(30)
    recorded = soundfile.info("r.wav").frames
    with (tmp_path / "f.csv").open() as file:
        assert len(list(csv.reader(file))) > 20
    assert 800 < recorded < 30 * 8000
    assert '"line":"summary"' in (tmp_path / "s.jsonl").read_text().splitlines()[-1]


@pytest.fixture
def frames_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the file until frames are first written, so that their file has space on the disk."""
    halt, write = HaltedFile(monkeypatch), FramesWriter.write

    def write_slowly(frames):
        write(frames)
        halt.released.set()

    monkeypatch.setattr(FramesWriter, "write", write_slowly)


def files_on(disk: Path) -> tuple[Path | str, ...]:
    return "--frames", disk / "f.npy", "--record-in", disk / "i.wav"


def occupy(disk: Path, free_kib: int = 16) -> None:
    """Fill a small disk except for a few KiB."""
    (disk / "large").write_bytes(bytes((64 - free_kib) << 10))


def test_a_run_continues_with_a_full_disk(small_disk: Path, frames_have_room: None) -> None:
    """The run continues to its end, reports everything and keeps the samples written so far."""
    soundfile.write("in.wav", tone(8000, 1.0), 8000)
    occupy(small_disk, free_kib=8)
    result = live_levels(*files_on(small_disk), code=2)
    assert "8,080 in" in result.stdout
    assert result.stderr.startswith(f"error: {small_disk / 'i.wav'}: cannot be written (")
    assert 0 < soundfile.info(small_disk / "i.wav").frames < 8000
    assert {path.name for path in small_disk.iterdir()} == {"large", "f.npy", "i.wav"}


def test_each_file_on_a_full_disk_is_reported_once(small_disk: Path) -> None:
    """The first problem is the error; the others are warnings."""
    soundfile.write("in.wav", tone(8000, 1.5), 8000)
    occupy(small_disk)
    model = voice(small_disk.parent / "model.onnx")
    names = ("i.wav", "o.wav", "s.jsonl")
    options = zip(("--record-in", "--record-out", "--stats"), names, strict=True)
    files = [part for option, name in options for part in (option, small_disk / name)]
    result = live(model, "in.wav", "--output", "same", *files, code=2)
    lines = result.stderr.splitlines()
    assert sorted(line.split(": ")[0] for line in lines) == ["error", "warning", "warning"]
    for name in names:
        assert sum(f"{small_disk / name}: " in line for line in lines) == 1


def test_statistics_are_closed_after_a_recording_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_half_a_second()
    closed: list[object] = []
    close = StatsWriter.close

    def note(writer, statistics=None):
        close(writer, statistics)
        closed.append(statistics)

    monkeypatch.setattr(StatsWriter, "close", note)
    (tmp_path / "folder.wav").mkdir()
    result = live_levels("--frames", "f.npy", "--stats", "s.jsonl", "--record-in", "folder.wav", code=2)
    assert result.stderr == "error: folder.wav: is not a file that can be replaced; give the name of a file\n"
    assert closed == [None]


@pytest.mark.parametrize("name", ["f.npy", "f.csv"])
def test_frames_end_where_the_disk_is_full(small_disk: Path, name: str) -> None:
    soundfile.write("in.wav", tone(8000, 1.0), 8000)
    occupy(small_disk)
    model = voice(small_disk.parent / "model.onnx")
    result = live(model, "in.wav", "--output", "same", "--frames", small_disk / name, "--json", code=2)
    report = json.loads(result.stdout)
    assert report["statistics"]["counters"]["frames_in"] >= 8000
    assert result.stderr == (
        f"error: {small_disk / name}: cannot be written (No space left on device); free some space, or write to "
        "another disk\n"
    )
    assert (small_disk / name).stat().st_size > 0


def test_the_report_names_the_file_of_the_remaining_frames(small_disk: Path) -> None:
    """The report says that the file ended and where the remaining frames are."""
    piece = np.zeros((2, 100, 8), np.float32)
    port = SimpleNamespace(name="y", axis=1, frames_hz=lambda _: None)
    outputs = SimpleNamespace(take_ready=lambda: [{"y": piece}], flush=lambda: [{}], pulses_lost=0)
    with FramesWriter(
        Target.of_frames(small_disk / "y.npy"), port, None, SimpleNamespace(outputs=outputs)
    ) as frames:
        for _ in range(20):
            frames.write()
    ended, problem = map(str, frames.problems)
    assert ended.endswith("free some space, or write to another disk")
    assert f"in {small_disk / 'y-frames-first.npy'}, along its first axis" in problem
    assert np.load(small_disk / "y-frames-first.npy").shape == (1000, 2, 8)


def test_frames_end_where_some_are_lost(tmp_path: Path) -> None:
    """The file ends at the first missing frame: later frames would have wrong times."""
    piece = np.arange(4, dtype=np.float32)
    port = SimpleNamespace(name="y", axis=0, frames_hz=lambda _: None)
    outputs = SimpleNamespace(take_ready=lambda: [{"y": piece}], flush=lambda: [{"y": piece}], pulses_lost=0)
    running = SimpleNamespace(outputs=outputs, abandoned=False)
    with FramesWriter(Target.of_frames(tmp_path / "y.npy"), port, None, running) as frames:
        frames.write()
        outputs.pulses_lost = 3
        frames.write()
        frames.finish()
    (problem,) = map(str, frames.problems)
    assert "y.npy: ends before the run does: the frames of 3 pulses were not taken in time" in problem
    assert np.load(tmp_path / "y.npy").tolist() == [0, 1, 2, 3]


def test_frames_are_complete_if_the_sound_disk_is_full(small_disk: Path, tmp_path: Path) -> None:
    """The run continues to its end, so all frames are written; the played samples so far are kept."""
    x = tone(8000, 1.0).astype(np.float32)
    soundfile.write("in.wav", x, 8000, subtype="FLOAT")
    occupy(small_disk)
    played = small_disk / "out.wav"
    model = voice(tmp_path / "model.onnx")
    result = live(model, "in.wav", played, "--output", "same", "--frames", "f.npy", "--json", code=2)
    assert json.loads(result.stdout)["statistics"]["counters"]["frames_in"] >= 8000
    assert result.stderr == (
        f"error: {played}: cannot be written (No space left on device); free some space, or write to another disk\n"
    )
    assert 0 < soundfile.info(played).frames < 8000
    np.testing.assert_array_equal(np.load("f.npy")[0, 0, :8000], x)
    assert {path.name for path in small_disk.iterdir()} == {"large", "out.wav"}


def test_ctrl_c_does_not_hide_that_the_disk_is_full(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is the usual end of a run and must not hide an error."""
    soundfile.write("in.wav", tone(8000, 1.0), 8000)
    occupy(small_disk, free_kib=8)
    follow = command.follow_run

    def follow_and_interrupt(*parts):
        follow(*parts)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(command, "follow_run", follow_and_interrupt)
    result = live_levels("--frames", "f.npy", "--record-in", small_disk / "i.wav", code=2)
    assert "8,080 in" in result.stdout
    assert result.stderr.startswith(f"error: {small_disk / 'i.wav'}: cannot be written (")


def test_files_of_a_lost_folder_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lost file is the error, the other a warning."""
    write_half_a_second()
    folder = tmp_path / "folder"
    folder.mkdir()
    follow = command.follow_run

    def follow_and_remove(*parts):
        follow(*parts)
        shutil.rmtree(folder)

    monkeypatch.setattr(command, "follow_run", follow_and_remove)
    result = live_levels(*files_on(folder), code=2)
    assert "4,080 in" in result.stdout
    warning, error = result.stderr.splitlines()
    assert warning.startswith(f"warning: {folder / 'f.npy'}: cannot be written (No such file or directory)")
    assert error.startswith(f"error: {folder / 'i.wav'}: cannot be written (No such file or directory)")


def test_a_line_in_use_is_not_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that a worker still uses is not touched: the frames end there, and the report says so."""
    write_half_a_second()
    stop, workers = Worker.stop, []
    monkeypatch.setattr(Worker, "stop", lambda worker: bool(workers.append(worker)))
    monkeypatch.setattr(Outputs, "flush", lambda _: pytest.fail("it is in use"))
    result = live_levels("--frames", "f.npy", code=2)
    assert "4,080 in" in result.stdout
    assert "f.npy: the last frames are missing" in result.stderr
    assert np.load(tmp_path / "f.npy").size > 10
    assert stop(workers[0])
    live_module.abandoned_pipelines.pop().close()


def test_the_report_is_printed_without_the_last_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_half_a_second()

    def unknown(_):
        raise InputError("last: no value in a stream of 0 frames; push some first")

    monkeypatch.setattr(Outputs, "flush", unknown)
    result = live_levels("--frames", "f.npy", code=2)
    assert "4,080 in" in result.stdout
    assert result.stderr == "error: last: no value in a stream of 0 frames; push some first\n"
    assert np.load(tmp_path / "f.npy").size > 10
