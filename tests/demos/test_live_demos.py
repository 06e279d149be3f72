"""The live demos run on a file and on a JACK server, and report correct measurements."""

import re
import runpy
import signal
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import soundfile

from bench.live.server import jack_server
from streaming.builtin import model_path, noisy_path, voice_path
from tests.demos.measurements import assert_measured
from tests.demos.scripts import run_demo
from tests.live.jack_playback import JACK, demo_command, play_sound
from tests.live.servers import server_or_skip, use_server
from tests.sources import ROOT

pytestmark = pytest.mark.usefixtures("usual_signals")

FRAME = 160
LIVE = ("live_denoiser.py", "voice_meter.py", "latency_probe.py")


def offline(model: Path) -> np.ndarray:
    """The outputs of a model for the built-in recording."""
    samples, _ = soundfile.read(noisy_path(), dtype="float32")
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"audio": samples[None]})[0][0]


def exit_code_of_demo(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> object:
    """Run a demo in this process and return its exit code or message."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(str(ROOT / "demos" / name), run_name="__main__")
    return exit_.value.code


@pytest.mark.parametrize("name", LIVE)
def test_every_demo_has_help(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of_demo(monkeypatch, name, "--help") == 0
    help_text = capsys.readouterr().out
    assert "--file" in help_text
    assert "--mic" in help_text


@pytest.mark.parametrize("name", LIVE)
def test_a_missing_file_is_reported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(exit_code_of_demo(monkeypatch, name, "--file", "nowhere.wav")).startswith("error: nowhere.wav")


def test_the_denoiser_plays_the_output_of_the_model(tmp_path: Path) -> None:
    target = tmp_path / "out.wav"
    result = run_demo("live_denoiser.py", "--fast", "--file", str(noisy_path()), str(target))
    assert result.returncode == 0, result.stderr
    assert "nothing was late, lost or silent" in result.stdout
    delay_s = float(re.match(r"([\d.]+) ms end to end", result.stdout)[1]) / 1e3
    played, rate_hz = soundfile.read(target, dtype="float32")
    expected, delay = offline(model_path()), round(delay_s * rate_hz)
    assert len(played) == delay + len(expected)
    assert not played[: delay - FRAME].any()
    np.testing.assert_allclose(played[delay:], expected, atol=2 / (1 << 15))


def test_the_meter_marks_the_model_s_values() -> None:
    result = run_demo("voice_meter.py", "--fast", "--loop", "trio", "--file", str(noisy_path()))
    assert result.returncode == 0, result.stderr
    *lines, summary, _ = result.stdout.splitlines()
    probabilities = offline(voice_path())
    highest = probabilities[: len(probabilities) // 10 * 10].reshape(-1, 10).max(1)
    assert [line.endswith("voice") for line in lines] == (highest > 0.5).tolist()
    assert [line.count("█") for line in lines] == np.round(40 * highest).astype(int).tolist()
    assert summary == f"voice in {(highest > 0.5).sum()} of {len(highest)} tenths, 0 frames lost"


def test_the_probe_agrees(tmp_path: Path) -> None:
    """The probe runs in stereo at a rate that needs both resamplers."""
    source = tmp_path / "in.wav"
    samples, _ = soundfile.read(noisy_path(), dtype="float32")
    times = np.arange(66_150) / 44_100 * 16_000
    sound = np.interp(times, np.arange(len(samples)), samples)
    soundfile.write(source, np.stack([sound, sound], 1), 44_100)
    result = run_demo("latency_probe.py", "--file", str(source))
    assert result.returncode == 0, result.stdout + result.stderr
    assert_measured(result.stdout)


def test_the_probe_notices_silence(tmp_path: Path) -> None:
    source = tmp_path / "in.wav"
    soundfile.write(source, np.zeros(8_000), 16_000)
    result = run_demo("latency_probe.py", "--file", str(source))
    assert result.returncode == 1
    assert "let something sound while it runs" in result.stdout
    assert not result.stderr


def test_the_demos_run_on_jack() -> None:
    with server_or_skip(jack_server()) as server, use_server(server):
        with play_sound(
            server, *demo_command("latency_probe.py"), "--mic", JACK, "--speaker", JACK, "--seconds", "1"
        ) as demo:
            printed, problem = demo.communicate(timeout=60)
        assert demo.returncode == 0, printed + problem
        assert_measured(printed)
        with play_sound(server, *demo_command("voice_meter.py"), "--mic", JACK) as demo:
            assert demo.stdout is not None
            assert any(line.rstrip().endswith("voice") for line in demo.stdout)
            demo.send_signal(signal.SIGINT)
            printed, problem = demo.communicate(timeout=60)
        assert demo.returncode == 0, problem
        assert "0 frames lost" in printed
        assert not problem
