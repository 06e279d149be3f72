"""The command line with models that take chunks and states."""

import csv

import numpy as np
import pytest
import soundfile
from onnx import TensorProto

from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.streaming.cli.chunk_files import save_model
from tests.streaming.command import pulse, refusal, report, write_sound

pytestmark = pytest.mark.usefixtures("working_folder")


def test_a_cached_filter_of_sound_agrees_with_its_authors_loop() -> None:
    """The command reads and writes WAV files; the report says which settings were inferred."""
    x = (normal_noise(1, 4_003) / 8).astype(np.float32)
    write_sound("in.wav", x[0], subtype="FLOAT")
    path = save_model("filter", models.cache_of_sound())
    result = pulse("run", path, "in.wav", "out.wav")
    assert "cache -> cache_out, by name" in result.stdout
    assert "axis 1, samples of sound" in result.stdout
    output, rate = soundfile.read("out.wav", dtype="float32")
    parts = [{"x": piece} for piece in models.pieces(x, 1, 8)]
    looped = models.loop(
        models.cache_of_sound(), parts, {"cache": ("cache_out", np.zeros((1, 4), np.float32))}
    )
    expected = np.concatenate([part["y"] for part in looped], 1)[0, :4_003]
    assert rate == 16_000
    np.testing.assert_allclose(output, expected, 1e-5, 1e-6)
    details = report("run", path, "in.wav", "again.wav")
    assert details["chunks"]["states"] == [{"input": "cache", "output": "cache_out", "reason": "by name"}]
    assert (details["pulse_frames"], details["frames"]) == (8, 4_003)


def test_options_set_context_first_value_and_delay() -> None:
    """The first value comes from a file; the axis and the state are named by hand too."""
    x = (normal_noise(1, 60) / 8).astype(np.float32)
    write_sound("in.wav", x[0], subtype="FLOAT")
    np.save("first.npy", np.full((1, 1), 2.0, np.float32))
    path = save_model("halved", models.half_context())
    pulse(
        *("run", path, "in.wav", "y.csv", "--pulse", "8", "--context", "x=4", "--initial", "state=first.npy"),
        *("--state", "state=state_out", "--axis", "y=1", "--delay", "y=2"),
    )
    with open("y.csv") as file:
        rows = list(csv.reader(file))
    first = {"state": ("state_out", np.full((1, 1), 2.0, np.float32))}
    parts = [{"x": piece} for piece in models.pieces(np.pad(x, ((0, 0), (0, 8))), 1, 8, 4)]
    expected = np.concatenate([part["y"] for part in models.loop(models.half_context(), parts, first)], 1)[
        0, 2:32
    ]
    np.testing.assert_allclose([float(value) for _, value in rows[1:]], expected, 1e-5, 1e-6)
    assert rows[2][0] == "0.000125"


def test_a_state_may_be_a_fixed_input() -> None:
    np.save("x.npy", normal_noise(1, 5, 4))
    path = save_model("gru", models.gru())
    pulse("run", path, "x.npy", "y.npy", "--constant", "h=0.5", "--state", "none")
    x, h = np.load("x.npy"), np.full((1, 1, 3), 0.5, np.float32)
    parts = models.loop(models.gru(), [{"x": piece, "h": h} for piece in models.pieces(x, 1, 1)], {})
    np.testing.assert_allclose(np.load("y.npy"), np.concatenate([part["y"] for part in parts], 1), 1e-5, 1e-6)


def test_no_state_excludes_a_state() -> None:
    path = save_model("gru", models.gru())
    message = refusal("convert", path, "--state", "none", "--state", "h=hn")
    assert "--state 'none': give a name and an output, such as h=hn, or none alone" in message


def test_a_first_value_may_be_a_list() -> None:
    np.save("x.npy", normal_noise(1, 5, 4))
    path = save_model("long", models.gru("time"))
    pulse("run", path, "x.npy", "y.npy", "--pulse", "2", "--initial", "h=[[[0.5, 0.5, 0.5]]]")
    h = np.full((1, 1, 3), 0.5, np.float32)
    (whole,) = models.loop(models.gru("time"), [{"x": np.load("x.npy")}], {"h": ("hn", h)})
    np.testing.assert_allclose(np.load("y.npy"), whole["y"], 1e-5, 1e-6)


@pytest.mark.parametrize("command", ["convert", "check", "bench", "dump"])
def test_other_commands_show_the_states(command: str) -> None:
    path = save_model("filter", models.cache_of_sound())
    more = ["--steps", 20, "--rounds", 1] if command == "bench" else []
    result = pulse(command, path, *more)
    assert "cache -> cache_out, by name" in result.stdout
    if command == "convert":
        details = report(command, path)
        assert details["chunks"]["axes"]["x"] == {"axis": 1, "reason": "samples of sound"}
        assert [entry["name"] for entry in details["buffers"]] == ["cache"]


def test_one_number_is_a_whole_state() -> None:
    """A number is a whole fixed input too; integers do for floats."""
    np.save("x.npy", normal_noise(1, 5, 4))
    path = save_model("gru", models.gru())
    for number, value in enumerate(("1", "[[[1, 1, 1]]]")):
        pulse("run", path, "x.npy", f"y{number}.npy", "--initial", f"h={value}")
    pulse("run", path, "x.npy", "zeros.npy")
    np.testing.assert_array_equal(np.load("y0.npy"), np.load("y1.npy"))
    assert not np.array_equal(np.load("y0.npy"), np.load("zeros.npy"))


def test_missing_fixed_inputs_are_refused() -> None:
    """Sound goes in, and something that is given once: the error says how."""
    write_sound("in.wav", normal_noise(1, 40)[0] / 8)
    inputs = {"x": [1, 8], "cache": [1, 8], "gain": [2, 4]}
    wires = [
        node("ReduceMean", "gain", "mean", keepdims=0),
        node("Mul", "x mean", "louder"),
        node("Add", "louder cache", "y"),
        node("Identity", "louder", "cache_out"),
    ]
    path = save_model("loud", models.build(wires, inputs, {"y": [1, 8], "cache_out": [1, 8]}))
    error = refusal("run", path, "in.wav", "y.wav")
    assert "give --in gain=FILE.npy, or --constant gain=VALUE" in error
    assert "or its time axis, as in --axis gain=1, if it has frames" in error


def test_chunks_of_wrong_size_name_the_options_to_change() -> None:
    """The error names both sizes and the options that set them."""
    shape, constants = {"x": [1, "time"], "h": [1, 6]}, {}
    wires = [node("Add", "x h", "y"), node("Identity", "y", "hn")]
    path = save_model("six", models.build(wires, shape, {"y": [1, 6], "hn": [1, 6]}, constants))
    error = refusal("convert", path, "--pulse", "5")
    assert error.startswith("error: six: does not take chunks of time=5: ")
    assert "--pulse and --context" in error


def test_dump_takes_constants() -> None:
    """The given input no longer is one."""
    path = save_model("gru", models.gru())
    assert "input h" in pulse("dump", path, "--stage", "load").stdout
    assert "input h" not in pulse("dump", path, "--stage", "load", "--constant", "h=0").stdout


def test_a_dim_of_streams_has_size_one() -> None:
    """The size is inferred and reported; a dim that may be time stays the user's choice."""
    shape = ["batch", "time", 4]
    path = save_model("named", models.build([node("Relu", "x", "y")], {"x": shape}, {"y": shape}))
    np.save("x.npy", normal_noise(1, 5, 4))
    for command in (["run", path, "x.npy", "y.npy"], ["check", path], ["convert", path], ["dump", path]):
        assert "batch = 1" in pulse(*command).stdout
    assert report("run", path, "x.npy", "y.npy")["sizes"] == {"batch": 1}
    np.testing.assert_array_equal(np.load("y.npy"), np.maximum(np.load("x.npy"), 0))
    shape = ["time", "batch", 4]
    path = save_model("turned", models.build([node("Relu", "x", "y")], {"x": shape}, {"y": shape}))
    assert "with --symbol, and give the others sizes, as in --input" in refusal("run", path, "x.npy", "y.npy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--context", "x"],
            "--context 'x': give a name and a number of frames, 0 or more, such as input=64",
        ),
        (
            ["--context", "x=soon"],
            "--context x=soon: cannot be read as a number of frames, 0 or more; give it as in input=64",
        ),
        (["--context", "x=-1"], "--context x=-1: cannot be read as a number of frames, 0 or more"),
        (["--context", "x=8"], "--context x=8: a chunk has 8 frames on axis 1, and some of them must be new"),
        (["--axis", "x=-1"], "--axis x=-1: cannot be read as an axis, counted from 0; give it as in x=1"),
        (["--axis", "x=7"], "--axis x=7: x has the shape 1,8; give one of its axes, counted from 0"),
        (
            ["--delay", "y=5000000"],
            "--delay y=5000000: each call makes 8 frames, and a delay has at most 65,536",
        ),
        (["--axis", "x=1", "--axis", "x=2"], "--axis 'x=2': x is given twice"),
        (["--state", "cache"], "--state 'cache': give a name and an output, such as h=hn, or none"),
        (["--state", "cache=y"], "a state keeps its type and shape"),
        (["--initial", "cache=none.npy"], "none.npy: no such file"),
        (
            ["--constant", "cache=loud"],
            "--constant cache=loud: cannot be read as a number, a list or a .npy file; ",
        ),
        (
            ["--initial", "cache=[1, 2]"],
            "initial value of cache: its shape is 2, the state's is 1,4; give that, or one",
        ),
        (["--keep", "z"], "unknown wire 'z'; choose one of y, cache_out"),
        (["--pulse", "5"], "pulse 5: one call of the model takes 8 new frames"),
    ],
)
def test_bad_options_of_chunks_are_refused(options: list[str], message: str) -> None:
    assert message in refusal("check", save_model("filter", models.cache_of_sound()), *options)


@pytest.mark.parametrize(
    "words", [("true", "false"), ("True", "False"), ("[True]", "[False]"), ("1", "0")], ids=str
)
def test_a_truth_value_is_written_as_in_json_or_python(words: tuple[str, str]) -> None:
    """A state says whether a chunk is the first, which gives zeros."""
    np.save("x.npy", normal_noise(1, 5, 4))
    wires = [node("Where", "first zero x", "y"), node("And", "first never", "first_out")]
    shapes = {"x": [1, "time", 4], "first": [1]}, {"y": [1, "time", 4], "first_out": [1]}
    model = models.build(wires, *shapes, {"zero": np.float32(0), "never": np.array([False])})
    for value in (model.graph.input[1], model.graph.output[1]):
        value.type.tensor_type.elem_type = TensorProto.BOOL
    path = save_model("marked", model)
    for word, frames in zip(words, (4, 5)):
        pulse("run", path, "x.npy", "y.npy", "--pulse", "1", "--initial", f"first={word}")
        assert np.count_nonzero(np.load("y.npy").any(-1)) == frames
