"""pulse run --live, however it ends: what was done until then is kept and told."""

import csv
import json
import shutil
import signal

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from streaming.builtin import voice_path
from streaming.cli.live import command
from streaming.errors import DeviceError
from streaming.live.outputs import Outputs
from streaming.live.worker import Worker
from tests.streaming.command import folder as folder
from tests.streaming.command import pulse, tone, voice
from tests.streaming.disks import small_disk as small_disk


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of a second that ends by an exception when it is over."""
    soundfile.write(tmp_path / "in.wav", np.zeros(8000, np.float32), 16000)
    follow = command._follow

    def ends(error, code):
        def followed(live, *rest):
            follow(live, *rest)
            raise error

        monkeypatch.setattr(command, "_follow", followed)
        files = ("--frames", "f.csv", "--stats", "s.jsonl", "--record-in", "r.wav")
        return pulse(
            *("run", voice_path(), "in.wav", "--live", "--quiet", "--backend", "numpy", *files), code=code
        )

    return ends


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), DeviceError("the cable is out")])
def test_all_is_kept_and_told(run, tmp_path, error):
    failed = isinstance(error, DeviceError)
    result = run(error, 2 if failed else 0)
    assert "8,000 in" in result.stdout
    assert result.stderr == ("error: the cable is out\n" if failed else "")
    with (tmp_path / "f.csv").open() as file:
        assert len(list(csv.reader(file))) > 40
    assert soundfile.info(tmp_path / "r.wav").frames == 8000
    assert '"line":"summary"' in (tmp_path / "s.jsonl").read_text().splitlines()[-1]


def files_on(disk):
    return "--frames", disk / "f.npy", "--record-in", disk / "i.wav"


def occupy(disk):
    """Leave a little room."""
    (disk / "large").write_bytes(bytes(48 << 10))


def live(*arguments, code):
    return pulse("run", *arguments, "--live", "--quiet", "--backend", "numpy", code=code)


def test_a_disk_that_is_full(small_disk, tmp_path):
    """The run goes on to its end and tells all; what was written until then is kept."""
    soundfile.write("in.wav", tone(16000, 1.0), 16000)
    occupy(small_disk)
    result = live(voice_path(), "in.wav", *files_on(small_disk), code=2)
    assert "16,000 in" in result.stdout
    assert result.stderr.startswith(f"error: {small_disk / 'i.wav'}: cannot be written (")
    assert 0 < soundfile.info(small_disk / "i.wav").frames < 16000
    assert {path.name for path in small_disk.iterdir()} == {"large", "f.npy", "i.wav"}


@pytest.mark.parametrize("name", ["f.npy", "f.csv"])
def test_frames_on_a_disk_that_is_full(small_disk, name):
    """They end where it was full."""
    soundfile.write("in.wav", tone(8000, 1.0), 8000)
    occupy(small_disk)
    model = voice(small_disk.parent / "model.onnx")
    result = live(model, "in.wav", "--output", "same", "--frames", small_disk / name, "--json", code=2)
    report = json.loads(result.stdout)
    assert report["account"]["counters"]["frames_in"] >= 8000
    assert result.stderr == (
        f"error: {small_disk / name}: cannot be written (No space left on device); make room, or write to another "
        "disk\n"
    )
    assert (small_disk / name).stat().st_size > 0


def test_ctrl_c_after_the_disk_was_full(small_disk, monkeypatch):
    """It is the usual end, and does not hide what went wrong."""
    soundfile.write("in.wav", tone(16000, 1.0), 16000)
    occupy(small_disk)
    follow = command._follow

    def followed(*parts):
        follow(*parts)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(command, "_follow", followed)
    result = live(voice_path(), "in.wav", "--record-in", small_disk / "i.wav", code=2)
    assert "16,000 in" in result.stdout
    assert result.stderr.startswith(f"error: {small_disk / 'i.wav'}: cannot be written (")


def test_a_folder_that_goes_away(tmp_path, monkeypatch):
    """Two files are lost, one of which is told first."""
    soundfile.write("in.wav", np.zeros(8000, np.float32), 16000)
    folder = tmp_path / "folder"
    folder.mkdir()
    follow = command._follow

    def followed(*parts):
        follow(*parts)
        shutil.rmtree(folder)

    monkeypatch.setattr(command, "_follow", followed)
    result = live(voice_path(), "in.wav", *files_on(folder), code=2)
    assert "8,000 in" in result.stdout
    warning, error = result.stderr.splitlines()
    assert warning.startswith(f"warning: {folder / 'f.npy'}: cannot be written (No such file or directory)")
    assert error.startswith(f"error: {folder / 'i.wav'}: cannot be written (No such file or directory)")


def test_a_line_that_somebody_still_uses(tmp_path, monkeypatch):
    """Nobody else touches it: the frames end where they are, and it is told."""
    soundfile.write("in.wav", np.zeros(8000, np.float32), 16000)
    monkeypatch.setattr(Worker, "stop", lambda _: False)
    monkeypatch.setattr(Outputs, "flush", lambda _: pytest.fail("somebody is inside"))
    result = live(voice_path(), "in.wav", "--frames", "f.npy", code=2)
    assert "8,000 in" in result.stdout
    assert "f.npy: the frames of the end are missing" in result.stderr
    assert np.load(tmp_path / "f.npy").size > 10


def test_a_model_that_must_have_heard_something(tmp_path, monkeypatch):
    """Its output is not known: the report is there all the same."""
    soundfile.write("in.wav", np.zeros(8000, np.float32), 16000)

    def unknown(_):
        raise InputError("last: not known in a stream of 0 frames; push some first")

    monkeypatch.setattr(Outputs, "flush", unknown)
    result = live(voice_path(), "in.wav", "--frames", "f.npy", code=2)
    assert "8,000 in" in result.stdout
    assert result.stderr == "error: last: not known in a stream of 0 frames; push some first\n"
    assert np.load(tmp_path / "f.npy").size > 10
