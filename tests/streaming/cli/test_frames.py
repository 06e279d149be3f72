"""``pulse run`` with frames instead of audio: pipes, an array for each input, and options that are for audio."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.noise import normal_noise
from tests.streaming.cli.pipes import pipe
from tests.streaming.command import features, pulse, refusal, save

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.fixture
def model() -> str:
    """A model of features [1, T, 4] -> [1, T, 2], and 9 frames in x.npy."""
    features("features.onnx")
    np.save("x.npy", normal_noise(1, 9, 4))
    return "features.onnx"


def sum_of_two() -> str:
    """Write y = a + b + gain, of which a and b stream; and their arrays."""
    nodes = [helper.make_node("Sum", ["a", "b", "gain"], ["y"], "sum")]
    save("sum.onnx", nodes, {"a": [1, "T", 4], "b": [1, "T", 4], "gain": [1, 1, 4]}, {"y": [1, "T", 4]})
    for seed, (name, frames) in enumerate({"a": 9, "b": 9, "gain": 1}.items()):
        np.save(f"{name}.npy", normal_noise(1, frames, 4, seed=seed))
    return "sum.onnx"


@pytest.mark.parametrize("options", [[], ["--format", "csv"], ["--format", "CSV"]], ids=str)
def test_frames_in_a_pipe_are_a_table(model: str, options: list[str]) -> None:
    pulse("run", model, "x.npy", "y.csv", "--backend", "numpy")
    out, messages = pipe(None, model, "x.npy", "-", *options)
    assert out == Path("y.csv").read_bytes()
    assert "each pulse" in messages


@pytest.mark.parametrize("frames", [1, 3, 9])
def test_frames_in_a_pipe_may_be_an_array(model: str, frames: int) -> None:
    np.save("x.npy", normal_noise(1, frames, 4))
    pulse("run", model, "x.npy", "y.npy", "--backend", "numpy")
    out, _ = pipe(None, model, "x.npy", "-", "--format", "npy")
    np.testing.assert_array_equal(np.load(io.BytesIO(out)), np.load("y.npy"))


def test_leading_axes_of_size_one_may_be_missing(model: str) -> None:
    """Features are often kept without the batch axis."""
    np.save("table.npy", np.load("x.npy")[0])
    for name in ("x", "table"):
        pulse("run", model, f"{name}.npy", f"y_{name}.npy")
    np.testing.assert_array_equal(np.load("y_table.npy"), np.load("y_x.npy"))


def test_an_array_in_a_pipe_is_all_or_nothing(model: str) -> None:
    np.save("x.npy", normal_noise(1, 9, 3))
    out, messages = pipe(None, model, "x.npy", "-", "--format", "npy", code=2)
    assert out == b""
    assert messages.startswith("error: x: expected")


def test_a_named_pipe_takes_an_array(model: str) -> None:
    os.mkfifo("y.npy")
    reader = os.open("y.npy", os.O_RDONLY | os.O_NONBLOCK)
    pulse("run", model, "x.npy", "y.npy", "--backend", "numpy")
    out = os.read(reader, 1 << 16)
    os.close(reader)
    assert np.load(io.BytesIO(out)).shape == (1, 9, 2)


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("-", ["--format", "wav"], "standard output: frames are written as .npy or .csv, not .wav"),
        ("y.txt", [], "y.txt: frames are written as .npy or .csv, not .txt"),
        ("y.npy", ["--format", "csv"], "y.npy: frames are written by suffix; call the file y.csv"),
        ("y.npy", ["--raw", "s16"], "x.npy: holds frames; --raw and --subtype are for audio"),
    ],
    ids=["audio in a pipe", "unknown suffix", "another suffix", "samples"],
)
def test_formats_that_frames_lack_are_refused(
    model: str, target: str, options: list[str], message: str
) -> None:
    assert refusal("run", model, "x.npy", target, *options).startswith(f"error: {message}")


@pytest.mark.parametrize("suffix", ["npy", "csv"])
def test_each_input_may_have_an_array(suffix: str) -> None:
    path = sum_of_two()
    routes = [argument for name in ("a", "b", "gain") for argument in ("--in", f"{name}={name}.npy")]
    pulse("run", path, *routes, f"y.{suffix}")
    np.savez("all.npz", **{name: np.load(f"{name}.npy") for name in ("a", "b", "gain")})
    pulse("run", path, "all.npz", f"z.{suffix}")
    assert Path(f"y.{suffix}").read_bytes() == Path(f"z.{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("routes", "message"),
    [
        (["a=a.npy", "b=b.npy"], "no source for input gain; give --in gain=SOURCE"),
        (["a=a.npy"], "no source for input b, gain; give --in b=SOURCE --in gain=SOURCE"),
        (["a=a.npy", "c=b.npy"], "unknown input 'c'; choose one of a, b, gain"),
        (["a=none.npy", "b=b.npy"], "none.npy: no such file"),
    ],
    ids=["one missing", "two missing", "another name", "no file"],
)
def test_inputs_without_an_array_are_named(routes: list[str], message: str) -> None:
    path = sum_of_two()
    arguments = [argument for route in routes for argument in ("--in", route)]
    assert message in refusal("run", path, *arguments, "y.npy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-q"], "--quiet: only for live audio; add --live, or omit it"),
        (["--no-lock-memory"], "--no-lock-memory: only for live audio; add --live, or omit it"),
        (
            ["--block", "0", "--stats", "s.jsonl"],
            "--block, --stats: only for live audio; add --live, or omit them",
        ),
        (
            ["--mic", "usb", "--priority", "0"],
            "--mic, --priority: only for live audio; add --live, or omit them",
        ),
    ],
    ids=["flag", "negated flag", "number and file", "device"],
)
def test_options_that_need_live_audio_are_named(model: str, options: list[Any], message: str) -> None:
    assert refusal("run", model, "x.npy", "y.npy", *options) == f"error: {message}\n"
