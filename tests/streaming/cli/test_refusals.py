"""Errors of one line for each bad model, sound, array and option of the command line."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from streaming.builtin import model_path, noisy_path
from tests.streaming.command import (
    features,
    pulse,
    refusal,
    report,
    save,
    tone,
    whole_axis,
    write_sound,
)

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.onnx", b"these are words, no model at all"),
        ("cut.onnx", model_path().read_bytes()[:9000]),
        ("empty.onnx", b""),
    ],
    ids=["text", "cut", "empty"],
)
def test_files_that_are_not_models_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert f"{name}: not an ONNX model" in refusal("convert", name)


def test_a_missing_model_is_refused() -> None:
    assert "none.onnx: no such file" in refusal("run", "none.onnx")


def negation(path: Path, *shape: int | str) -> Any:
    """Write a model of one operator whose input and output have this shape."""
    return save(path, [helper.make_node("Neg", ["x"], ["y"])], {"x": [*shape]}, {"y": [*shape]})


def test_a_model_without_a_stream_is_refused(tmp_path: Path) -> None:
    still = negation(tmp_path / "still.onnx", 1, 8)
    assert "no input has a symbolic dim" in refusal("convert", still)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "2 symbols (C, T)", id="none"),
        pytest.param(["--symbol", "Q"], "unknown symbol 'Q'", id="unknown"),
        pytest.param(["--input", "1,T"], "give a name and a shape", id="shape without a name"),
    ],
)
def test_a_model_of_two_symbols_is_refused_without_a_choice(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    assert message in refusal("convert", negation(tmp_path / "two.onnx", "C", "T"), *arguments)


def test_a_given_shape_chooses_the_symbol(tmp_path: Path) -> None:
    two = negation(tmp_path / "two.onnx", "C", "T")
    assert report("convert", two, "--input", "x=1,T,f32")["symbol"] == "T"


def test_the_error_of_a_model_that_cannot_stream_names_the_node(tmp_path: Path) -> None:
    result = pulse("convert", whole_axis(tmp_path / "whole.onnx"), code=2)
    assert "y (softmax" in result.stderr
    assert "stream axis 1: whole:" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["run", "convert", "check", "bench"])
def test_unsuitable_pulses_are_refused_with_a_suitable_one(command: str) -> None:
    assert "use 160" in refusal(command, "--pulse", "100")


def test_a_pulse_of_no_frames_is_refused() -> None:
    assert "not a positive number" in refusal("convert", "--pulse", "0")


def write_unknown_codec(name: str) -> None:
    """A WAV file whose samples are in an unknown format."""
    body = (
        b"WAVEfmt "
        + struct.pack("<IHHIIHH", 16, 0x4321, 1, 16000, 32000, 2, 16)
        + b"data"
        + struct.pack("<I", 4)
        + bytes(4)
    )
    Path(name).write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)


@pytest.fixture
def sounds(working_folder: None) -> None:
    """Audio files, most of them bad."""
    nan = tone(16000)
    nan[5000] = np.nan
    write_sound("nan.wav", nan, subtype="FLOAT")
    write_sound("short.wav", np.zeros(0))
    write_sound("good.wav", tone(16000))
    write_unknown_codec("codec.wav")
    Path("zero.wav").write_bytes(b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nan.wav out.wav", "nan.wav: NaN at sample 5000 (0.312 s)"),
        ("short.wav out.wav", "short.wav: the file has no samples"),
        ("zero.wav out.wav", "zero.wav: the file is empty"),
        ("none.wav out.wav", "none.wav: no such file"),
        ("codec.wav out.wav", "cannot be read as audio"),
        ("good.wav out.mp4", "frames as .npy, .csv, not .mp4"),
        ("good.wav good.wav", "is the input; write to another file"),
        (
            "good.wav out.wav --channel 3",
            "channel 3: the audio has 1 channel, numbered from 0; give mix, each or 0\n",
        ),
        ("good.wav out.wav --output z", "unknown output 'z'"),
        ("good.wav none/out.wav", "check the folder"),
    ],
)
@pytest.mark.usefixtures("sounds")
def test_bad_recordings_are_refused_and_nothing_is_written(
    arguments: str, message: str, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    assert message in refusal("run", *arguments.split(), "--backend", "numpy")
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def arrays(working_folder: None) -> None:
    """Files of arrays, none of which the model of ``features`` takes."""
    bad = np.zeros((1, 9, 4), np.float32)
    bad[0, 6] = np.nan
    np.save("nan.npy", bad)
    np.save("flat.npy", np.zeros(9, np.float32))
    np.save("middle.npy", np.zeros((9, 1, 4), np.float32))
    np.save("turned.npy", np.zeros((4, 9), np.float32))
    np.save("swapped.npy", np.zeros((1, 4, 9), np.float32))
    np.save("wrong.npy", np.zeros((1, 5, 9), np.float32))
    Path("table.csv").write_text("0.1,0.2,0.3,0.4\n")
    np.save("ints.npy", np.zeros((1, 9, 4), np.int64))
    Path("text.npy").write_text("words")
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez("other.npz", z=bad)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nan.npy", "x: NaN at frame 6; replace it\n"),
        ("flat.npy", "x: expected [1, any, 4] f32, got shape [9]\n"),
        ("middle.npy", "got shape [9, 1, 4]; reshape it with .reshape(1, -1, 4)\n"),
        (
            "turned.npy",
            "got shape [4, 9]; its time axis is 1: move it with numpy.moveaxis(x, 1, 0).reshape(1, -1, 4)\n",
        ),
        ("swapped.npy", "got shape [1, 4, 9]; its time axis is 2: move it with numpy.moveaxis(x, 2, 1)\n"),
        ("wrong.npy", "x: expected [1, any, 4] f32, got shape [1, 5, 9]\n"),
        ("ints.npy", "got i64"),
        ("text.npy", "text.npy: cannot be read"),
        ("objects.npy", "; write numbers with numpy.save or numpy.savez\n"),
        ("other.npz", "no array for input x; the file has z"),
        ("none.npy", "none.npy: no such file"),
        ("table.csv", "table.csv: tables are written, but not read; give audio, or frames as .npy or .npz"),
        pytest.param(noisy_path(), "has 1 channel, and features takes 4 channels: x:0, x:1,", id="audio"),
        pytest.param(noisy_path(), "features of audio need a recipe (pulse recipe)\n", id="way out"),
    ],
)
@pytest.mark.usefixtures("arrays")
def test_bad_arrays_are_refused_and_nothing_is_written(name: str, message: str, tmp_path: Path) -> None:
    model = features(tmp_path / "features.onnx")
    assert message in refusal("run", model, name, "out.npy", "--pulse", "2", "--backend", "numpy")
    assert not (tmp_path / "out.npy").exists()


def test_a_file_in_place_of_a_folder_is_refused() -> None:
    Path("file").touch()
    assert "file: is a file; give the name of a folder with --output" in refusal("build", "-o", "file")


def test_a_state_of_no_input_is_named_before_its_sizes() -> None:
    model = save(
        "sizes.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": ["B", "T", "F"]}, {"y": ["B", "T", "F"]}
    )
    message = refusal("convert", model, "--state", "a=b")
    assert "state a=b: unknown input 'a'; choose one of x" in message


def test_a_file_of_python_without_a_name_is_refused() -> None:
    Path("app.py").write_text("def make(): ...")
    message = refusal("convert", "app.py")
    assert (
        "app.py: is Python code; name the module, class or function in it, as in app.py:make_model" in message
    )


def test_an_unknown_backend_is_refused() -> None:
    assert "no backend 'gpu'; choose numba, numpy or onnxruntime" in refusal("run", "--backend", "gpu")


@pytest.mark.parametrize(
    "command",
    [
        ("run", "in.wav", "folder"),
        ("convert", "-o", "folder"),
        ("compile", "-o", "folder"),
        ("recipe", str(model_path()), "-o", "folder"),
    ],
    ids=["run", "convert", "compile", "recipe"],
)
def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path, command: tuple[Any, ...]) -> None:
    """The message says that it is a folder, whatever the command writes."""
    (tmp_path / "folder").mkdir()
    write_sound(tmp_path / "in.wav", tone(800))
    assert "not a folder" in refusal(*command)


def test_audio_for_a_model_of_features_needs_a_recipe(tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"], "same")]
    model = save(tmp_path / "bands.onnx", nodes, {"x": [1, 40, "T"]}, {"y": [1, 40, "T"]})
    message = refusal("run", model, noisy_path(), "out.npy", "--backend", "numpy")
    assert (
        "bands: takes x: 1,40,1,f32, not audio of one to 8 channels; write a recipe with the stages before it"
        in message
    )
