"""Wrong uses of ``pulse run --live`` are reported before anything runs, and no file is touched."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from streaming.builtin import voice_path
from tests.streaming.command import features, refusal

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "in.wav"
    soundfile.write(path, np.zeros(1600, np.float32), 16000)
    return path


def live(*arguments: Path | int | str) -> str:
    return refusal("run", *arguments, "--live", "--backend", "numpy", "--quiet")


@pytest.mark.parametrize("option", ["--record-in", "--record-out", "--stats"])
def test_the_input_is_not_replaced(sound: Path, option: str) -> None:
    before = sound.read_bytes()
    assert "is the input; write to another file" in live(sound, "out.wav", option, sound)
    assert "is the input; write to another file" in live(sound, sound)
    assert sound.read_bytes() == before


def test_the_model_is_not_replaced(sound: Path, tmp_path: Path) -> None:
    model = features(tmp_path / "model.onnx")
    before = model.read_bytes()
    assert "is the input" in live(model, sound, "--stats", tmp_path / "." / "model.onnx", "--rate", 16000)
    assert model.read_bytes() == before


def test_a_file_is_not_written_twice(sound: Path) -> None:
    assert "would be written twice" in live(sound, "out.wav", "--record-in", "x.wav", "--record-out", "x.wav")
    assert "would be written twice" in live(sound, "out.wav", "--record-out", "./out.wav")


@pytest.mark.parametrize("option", ["--mic", "--speaker"])
def test_devices_together_with_a_file_are_refused(sound: Path, option: str) -> None:
    assert f"replaces the devices: omit {option} usb" in live(sound, option, "usb")


def test_a_target_without_a_speaker_is_refused(sound: Path) -> None:
    assert "--speaker none: out.wav is for the played audio" in live(sound, "out.wav", "--speaker", "none")


def test_a_target_of_a_model_that_plays_nothing_is_refused(sound: Path, tmp_path: Path) -> None:
    assert "there is nothing to play" in live(voice_path(), sound, tmp_path / "out.wav")
    assert not (tmp_path / "out.wav").exists()


def test_a_block_of_hours_is_refused(sound: Path) -> None:
    message = live(sound, "--block", 999999999)
    assert "blocks of 999999999 frames are 62500 s" in message
    assert "give at most --block 160000" in message


def test_headroom_for_the_callback_is_refused(sound: Path) -> None:
    message = live(sound, "--engine", "callback", "--headroom", 5)
    assert "omit --headroom, or choose --engine worker" in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine", "gpu"), "choose one of worker, callback"),
        (("--headroom", 10001), "--headroom 10001: give 0 to 10000 ms"),
        (("--reconnect", "often"), "--reconnect often: choose keep or reset, or omit it"),
        (("--policy", "hope"), "choose one of wait"),
        (("--cpu", "9999"), "--cpu 9999: this machine has CPUs 0 to "),
    ],
)
def test_names_that_do_not_exist_are_refused(sound: Path, options: tuple[str, str], words: str) -> None:
    assert words in live(sound, *options)
