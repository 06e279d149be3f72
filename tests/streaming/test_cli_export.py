"""``pulse convert -o``: a file that any runtime can run, checked before it has its name."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import soundfile

from pulse.errors import DivergenceError
from pulse.onnx.write import check as proof
from streaming.builtin import model_path, noisy_path
from streaming.cli import app
from tests.streaming.command import RUNNER, pulse, refused, report


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def test_the_builtin_model(tmp_path):
    """Written, proved, and run again as the same stream."""
    result = pulse("convert", "--pulse", "320", "-o", "out.onnx")
    assert "out.onnx: opset 17" in result.stdout
    assert "onnxruntime" in result.stdout and "equals offline" in result.stdout
    entries = {entry.key: entry.value for entry in onnx.load("out.onnx").metadata_props}
    assert entries["sample_rate"] == "16000"
    assert entries["pulse_frames"] == "320"
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]
    pulse("run", model_path(), noisy_path(), "first.wav", "--pulse", "320")
    pulse("run", "out.onnx", noisy_path(), "second.wav")
    first, second = (soundfile.read(name)[0] for name in ("first.wav", "second.wav"))
    np.testing.assert_allclose(first, second, atol=2 / (1 << 15))


def test_json():
    """What was written and how it was proved."""
    told = report("convert", "-o", "out.onnx", "--opset", "18")["written"]
    assert told["path"] == "out.onnx"
    assert told["opset"] == 18
    assert told["states"] == 8
    assert told["check"]["error"] < 1e-5
    assert len(told["check"]["lengths"]) > 5
    assert report("convert", "-o", "out.onnx", "--no-check")["written"]["check"] is None
    assert "written" not in report("convert")


def test_a_file_that_is_wrong_is_not_kept(tmp_path, monkeypatch):
    """Exit code 1; what was there before stays."""
    (tmp_path / "out.onnx").write_text("older")

    def broken(*_):
        raise DivergenceError("y: at [0] offline 1, the file gives 2")

    monkeypatch.setattr(proof, "check", broken)
    result = RUNNER.invoke(app, ["convert", "-o", "out.onnx"])
    assert result.exit_code == 1
    assert "the file gives 2; out.onnx is not written" in result.stderr
    assert (tmp_path / "out.onnx").read_text() == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]


def test_bad_use():
    assert "opset 3 cannot be written" in refused("convert", "-o", "out.onnx", "--opset", "3")
    assert "check the folder" in refused("convert", "-o", "nowhere/out.onnx")
    assert "a model is written as .onnx, not .wav" in refused("convert", "-o", "out.wav")
    os.mkfifo("pipe.onnx")
    assert "pipe.onnx: is no file that can be replaced" in refused("convert", "-o", "pipe.onnx")
    assert Path("pipe.onnx").is_fifo()


def test_a_full_disk():
    """The name that the user gave; nothing is left."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        message = refused("convert", "-o", "out.onnx")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert message.startswith("error: out.onnx: cannot be written (File too large)")
    assert not list(Path().iterdir())


def test_it_knows_its_pulse():
    """Of a written file: shown, checked, and other pulses refused."""
    pulse("convert", "-o", "out.onnx", "--no-check")
    told = report("convert", "out.onnx")
    assert told["pulse_frames"] == 160
    assert {"pulses", "spectrum.window.state"} <= {buffer["name"] for buffer in told["buffers"]}
    assert json.loads(pulse("check", "out.onnx", "--length", "500", "--json").stdout)["equal"]
    assert "written for pulses of 160 frames" in refused("convert", "out.onnx", "--pulse", "80")
