"""The command line: what it writes, what it reports, and one line for each bad use."""

import json
import struct

import numpy as np
import onnx
import pytest
import soundfile
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from streaming.builtin import clean_path, model_path, noisy_path
from streaming.cli import app
from tests.streaming.small import BACKENDS

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def pulse(*arguments, code=0):
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def report(*arguments):
    return json.loads(pulse(*arguments, "--json").stdout)


def refused(*arguments):
    """The one line that a bad use gives."""
    result = pulse(*arguments, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def save(path, nodes, inputs, outputs, constants=(), metadata=None):
    def info(values):
        return [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()
        ]

    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(constants).items()]
    graph = helper.make_graph(nodes, "graph", info(inputs), info(outputs), stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for key, value in (metadata or {}).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, path)
    return path


def features(path, metadata=None):
    """Of x [1, T, 4]: y [1, T, 2]."""
    weights = {"w": np.arange(8, dtype=np.float32).reshape(4, 2)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "product")]
    return save(path, nodes, {"x": [1, "T", 4]}, {"y": [1, "T", 2]}, weights, metadata)


def voice(path):
    """Of audio [1, 1, T] at 8 kHz: the mean of every 80 samples [1, 1, T/80], and the samples themselves."""
    nodes = [
        helper.make_node("AveragePool", ["audio"], ["level"], "level", kernel_shape=[80], strides=[80]),
        helper.make_node("Identity", ["audio"], ["same"], "same"),
    ]
    outputs = {"level": [1, 1, "U"], "same": [1, 1, "T"]}
    return save(path, nodes, {"audio": [1, 1, "T"]}, outputs, metadata={"sample_rate": "8000"})


def whole_axis(path):
    nodes = [helper.make_node("Softmax", ["x"], ["y"], "attention", axis=1)]
    return save(path, nodes, {"x": [1, "T"]}, {"y": [1, "T"]})


def causal_attention(path):
    """Each frame of x [1, T, 4] is a mean of all frames so far, by how like it they are."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["k"], "k", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "k"], ["scores"], "scores"),
        helper.make_node("Shape", ["scores"], ["shape"], "shape"),
        helper.make_node("Expand", ["low", "shape"], ["lows"], "lows"),
        helper.make_node("Trilu", ["lows", "one"], ["mask"], "mask", upper=1),
        helper.make_node("Add", ["scores", "mask"], ["masked"], "masked"),
        helper.make_node("Softmax", ["masked"], ["weights"], "weights", axis=-1),
        helper.make_node("MatMul", ["weights", "x"], ["y"], "mixed"),
    ]
    constants = {"low": np.full(1, -1e9, np.float32), "one": np.array(1)}
    return save(path, nodes, {"x": [1, "T", 4]}, {"y": [1, "T", 4]}, constants)


def write_sound(name, samples, rate=16000, **how):
    soundfile.write(name, samples, rate, **how)
    return name


def tone(rate, seconds=0.5, hz=300):
    return 0.4 * np.sin(2 * np.pi * hz * np.arange(int(rate * seconds)) / rate)


def snr_db(reference, x):
    return 10 * np.log10(np.sum(reference**2) / np.sum((reference - x) ** 2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_run_without_arguments_denoises_the_built_in_sound(tmp_path, backend):
    found = report("run", "--backend", backend)
    clean, denoised = soundfile.read(clean_path())[0], soundfile.read(tmp_path / "denoised.wav")[0]
    assert denoised.shape == clean.shape
    assert found["snr_after_db"] == pytest.approx(snr_db(clean, denoised))
    assert found["snr_after_db"] > found["snr_before_db"] + 5
    assert (found["pulse_frames"], found["pulse_ms"], found["rate_from"]) == (160, 10.0, "builtin")
    (delay,) = found["delays"]
    assert (delay["model_frames"], delay["reblocking_frames"], delay["total_frames"]) == (160, 159, 319)
    assert delay["total_ms"] == pytest.approx(319 / 16)
    latency = found["latency"]
    assert latency["count"] == len(clean) // 160
    assert latency["deadline_us"] == pytest.approx(10_000)
    assert 0 < latency["p50_us"] <= latency["p99_us"] <= latency["max_us"]
    assert list(tmp_path.iterdir()) == [tmp_path / "denoised.wav"]


def test_run_in_words():
    words = pulse("run", "--backend", "numpy").stdout
    for part in (
        "319 frames = 19.94 ms: 160 of the model + 159 until a pulse is full",
        "real-time factor",
        "p99.9",
        "SNR",
    ):
        assert part in words


def test_what_run_writes_is_the_offline_result_aligned(tmp_path):
    from pulse import load

    noisy = soundfile.read(noisy_path(), dtype="float32")[0]
    write_sound("in.wav", noisy, subtype="FLOAT")
    pulse("run", model_path(), "in.wav", "out.wav", "--pulse", 320, "--backend", "numpy")
    offline = load(model_path()).analyse().run(noisy[None])["denoised"][0]
    assert soundfile.info("out.wav").subtype == "FLOAT"
    np.testing.assert_allclose(soundfile.read("out.wav")[0], offline, atol=1e-6)


def test_stereo_at_44_khz_through_a_16_khz_model_stays_aligned():
    rate, at = 44100, 30_000
    sound = np.stack([tone(rate, 1.0), np.zeros(rate)], axis=1)
    sound[at : at + 20, 1] = 0.5
    write_sound("in.wav", sound, rate)
    found = report("run", "in.wav", "out.wav", "--channel", "each", "--backend", "numpy")
    out, rate_out = soundfile.read("out.wav")
    assert (out.shape, rate_out) == (sound.shape, rate)
    assert (found["streams"], found["file_rate_hz"], found["rate_hz"]) == (2, rate, 16000)
    click = out[at - 200 : at + 200, 1]
    middle = np.sum(np.arange(400) * click**2) / np.sum(click**2)
    assert middle == pytest.approx(209.5, abs=2)


@pytest.mark.parametrize(("channel", "expected"), [("mix", 0.5), ("0", 1.0), ("1", 0.0)])
def test_one_stream_of_two_channels(tmp_path, channel, expected):
    left = tone(8000)
    write_sound("in.wav", np.stack([left, np.zeros_like(left)], axis=1), 8000, subtype="FLOAT")
    model = voice(tmp_path / "voice.onnx")
    pulse("run", model, "in.wav", "out.wav", "--output", "same", "--channel", channel, "--backend", "numpy")
    np.testing.assert_allclose(soundfile.read("out.wav")[0], expected * left, atol=1e-6)


def test_frames_that_are_no_sound_get_their_times(tmp_path):
    model = voice(tmp_path / "voice.onnx")
    write_sound("in.wav", tone(8000), 8000, subtype="FLOAT")
    report("run", model, "in.wav", "level.csv", "--output", "level", "--backend", "numpy")
    lines = (tmp_path / "level.csv").read_text().splitlines()
    assert lines[0] == "time_s,value"
    assert [line.split(",")[0] for line in lines[1:4]] == ["0.000000", "0.010000", "0.020000"]
    values = [float(line.split(",")[1]) for line in lines[1:]]
    np.testing.assert_allclose(values, tone(8000).reshape(-1, 80).mean(1), atol=1e-6)
    assert "output level is no sound" in refused(
        "run", model, "in.wav", "o.wav", "--output", "level", "--backend", "numpy"
    )


def test_features_from_npy_to_npy_and_csv(tmp_path):
    model = features(tmp_path / "features.onnx")
    x = np.random.default_rng(0).standard_normal((1, 11, 4))
    np.save("x.npy", x)
    found = report("run", model, "x.npy", "y.npy", "--pulse", "4", "--backend", "numpy")
    expected = x @ np.arange(8).reshape(4, 2)
    np.testing.assert_allclose(np.load("y.npy"), expected, rtol=1e-4, atol=1e-5)
    assert (found["frames"], found["rate_hz"], found["real_time_factor"]) == (11, None, None)
    np.savez("x.npz", x=x.astype(np.float32))
    pulse("run", model, "x.npz", "y.csv", "--backend", "numpy")
    rows = np.loadtxt("y.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(rows, np.column_stack([np.arange(11), expected[0]]), rtol=1e-4, atol=1e-5)


def test_clipping_is_told():
    write_sound("in.wav", np.full(8000, 0.99), 8000)
    assert "clipped" not in pulse("run", "in.wav", "out.wav", "--backend", "numpy").stderr


def test_convert_lists_ports_buffers_and_nodes():
    found = report("convert", "--pulse", "320")
    assert [port["shape"] for port in found["inputs"]] == [[1, 320]]
    assert found["outputs"][0]["delay_frames"] == 160
    assert found["buffer_bytes"] == sum(buffer["bytes"] for buffer in found["buffers"]) > 0
    assert {"spectrum", "spectrum.window"} <= {node["node"] for node in found["nodes"]}
    words = pulse("convert").stdout
    assert "pulse              160 frames = 10.00 ms" in words
    assert "spectrum.window" in words


@pytest.mark.parametrize("backend", BACKENDS)
def test_check_proves_the_built_in_model(backend):
    found = report("check", "--backend", backend, "--length", "5", "--length", "1000")
    assert found["equal"]
    assert found["lengths"] == [5, 1000]
    assert found["backends"] == list(dict.fromkeys(["numpy", backend]))
    assert found["error"] <= found["atol"]
    assert "equal: every frame" in pulse("check", "--backend", "numpy", "--length", "5").stdout


def test_check_names_the_wire_and_exits_1_where_a_frame_differs(monkeypatch):
    from pulse.ops.delay import Delay

    class Late(Delay):
        def begin(self):
            return [array + 1 for array in super().begin()]

    monkeypatch.setattr("pulse.pulsify.wiring.Delay", Late)
    result = pulse("check", "--backend", "numpy", "--length", "500", code=1)
    assert "error: spectrum" in result.stderr
    assert "diverges at frame 0 of a stream of 500" in result.stderr
    found = json.loads(pulse("check", "--backend", "numpy", "--length", "500", "--json", code=1).stdout)
    assert not found["equal"]
    assert found["divergence"]["backend"] == "numpy"


@pytest.mark.parametrize("backend", BACKENDS)
def test_bench_measures_every_step(backend):
    found = report("bench", "--backend", backend, "--steps", "20", "--rounds", "2")
    assert found["latency"]["count"] == 40
    assert [part["count"] for part in found["rounds"]] == [20, 20]
    assert sum(row["count"] for row in found["histogram"]) == 40
    if backend == "numpy":
        assert found["profile"] is None
    else:
        costs = [row["us_per_step"] for row in found["profile"]]
        assert costs == sorted(costs, reverse=True)
        assert sum(row["share"] for row in found["profile"]) == pytest.approx(1)
    words = pulse("bench", "--backend", backend, "--steps", "20", "--rounds", "2").stdout
    assert "latency of a step" in words
    assert ("no profile" in words) == (backend == "numpy")


@pytest.mark.parametrize(
    ("stage", "part"),
    [
        ("load", "spectrum = Conv(mono, fourier)"),
        ("typed", "denoise, typed:"),
        ("decluttered", "denoise, decluttered:"),
        ("pulsed", "spectrum.window"),
    ],
)
def test_dump_at_every_stage(stage, part):
    assert part in pulse("dump", "--stage", stage).stdout
    assert pulse("dump", "--stage", stage, "--dot").stdout.startswith("digraph ")


def test_dump_of_a_program():
    assert "numpy backend has no instructions" in refused("dump", "--stage", "program", "--backend", "numpy")
    if "numba" in BACKENDS:
        assert "instructions" in pulse("dump", "--stage", "program").stdout


def test_version_and_help():
    assert pulse("-v").stdout.startswith("pulse ")
    assert pulse("--help").stdout.count("pulse run") == 2
    for command in ("run", "convert", "check", "bench", "dump"):
        assert "Examples" in pulse(command, "--help").stdout


def test_the_rate_is_the_models_or_given_or_assumed(tmp_path):
    plain = save(tmp_path / "p.onnx", [helper.make_node("Neg", ["x"], ["y"])], {"x": ["T"]}, {"y": ["T"]})
    wrong = features(tmp_path / "wrong.onnx", {"sample_rate": "fast"})

    def rate(*arguments):
        found = report("convert", *arguments)
        return found["rate_hz"], found["rate_from"], found["pulse_frames"]

    assert rate(voice(tmp_path / "v.onnx")) == (8000, "model", 80)
    assert rate(plain) == (16000, "default", 160)
    assert rate(plain, "--rate", "44100") == (44100, "option", 441)
    assert rate(features(tmp_path / "f.onnx")) == (None, None, 1)
    assert "sample_rate 'fast'" in refused("convert", wrong)


def test_bad_models(tmp_path):
    (tmp_path / "text.onnx").write_text("these are words, no model at all")
    (tmp_path / "cut.onnx").write_bytes(model_path().read_bytes()[:9000])
    (tmp_path / "empty.onnx").write_bytes(b"")
    assert "none.onnx: no such file" in refused("run", "none.onnx")
    for name in ("text.onnx", "cut.onnx", "empty.onnx"):
        assert f"{name}: not an ONNX model" in refused("convert", name)


def test_models_without_a_stream_or_with_two(tmp_path):
    neg = [helper.make_node("Neg", ["x"], ["y"])]
    still = save(tmp_path / "still.onnx", neg, {"x": [1, 8]}, {"y": [1, 8]})
    two = save(tmp_path / "two.onnx", neg, {"x": ["B", "T"]}, {"y": ["B", "T"]})
    assert "no input has a symbolic dim" in refused("convert", still)
    assert "2 symbols (B, T)" in refused("convert", two)
    assert "no input has a symbol Q" in refused("convert", two, "--symbol", "Q")
    assert report("convert", two, "--input", "x=1,T,f32")["symbol"] == "T"
    assert "give a name and a shape" in refused("convert", two, "--input", "1,T")


def test_a_model_that_cannot_stream_tells_the_node(tmp_path):
    result = pulse("convert", whole_axis(tmp_path / "whole.onnx"), code=2)
    assert "y (softmax" in result.stderr
    assert "stream axis 1: whole:" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_pulse_that_does_not_suit():
    for command in ("run", "convert", "check", "bench"):
        assert "use 160" in refused(command, "--pulse", "100")
    assert "not a positive number" in refused("convert", "--pulse", "0")


def unknown_codec(name):
    """A WAV file whose samples are in a format that nobody knows."""
    body = (
        b"WAVEfmt "
        + struct.pack("<IHHIIHH", 16, 0x4321, 1, 16000, 32000, 2, 16)
        + b"data"
        + struct.pack("<I", 4)
        + bytes(4)
    )
    with open(name, "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", len(body)) + body)
    return name


def test_bad_sounds(tmp_path):
    nan = tone(16000)
    nan[5000] = np.nan
    write_sound("nan.wav", nan, subtype="FLOAT")
    write_sound("short.wav", np.zeros(0))
    write_sound("good.wav", tone(16000))
    (tmp_path / "zero.wav").write_bytes(b"")

    def run(*arguments):
        return refused("run", *arguments, "--backend", "numpy")

    assert "nan.wav: NaN at sample 5000 (0.312 s)" in run("nan.wav", "out.wav")
    assert "short.wav: the file has no samples" in run("short.wav", "out.wav")
    assert "zero.wav: the file is empty" in run("zero.wav", "out.wav")
    assert "none.wav: no such file" in run("none.wav", "out.wav")
    assert "cannot be read as sound" in run(unknown_codec("codec.wav"), "out.wav")
    assert "sound is written as .wav, .flac, .ogg, frames as .npy, .csv, not .mp4" in run(
        "good.wav", "out.mp4"
    )
    assert "is the input; write to another file" in run("good.wav", "good.wav")
    assert "channel 3: the sound has 1 channel" in run("good.wav", "out.wav", "--channel", "3")
    assert "no output is called 'z'" in run("good.wav", "out.wav", "--output", "z")
    assert "check the folder" in run("good.wav", "none/out.wav")
    assert not (tmp_path / "out.wav").exists()
    assert not list(tmp_path.glob(".*"))


def test_bad_arrays(tmp_path):
    model = features(tmp_path / "features.onnx")
    bad = np.zeros((1, 9, 4), np.float32)
    bad[0, 6] = np.nan
    np.save("nan.npy", bad)
    np.save("flat.npy", np.zeros(9, np.float32))
    np.save("ints.npy", np.zeros((1, 9, 4), np.int64))
    (tmp_path / "text.npy").write_text("words")
    np.savez("other.npz", z=bad)

    def run(name):
        return refused("run", model, name, "out.npy", "--pulse", "2", "--backend", "numpy")

    assert "x: NaN at frame 6" in run("nan.npy")
    assert "x: expected [1, any, 4] f32, got shape [9]" in run("flat.npy")
    assert "got i64" in run("ints.npy")
    assert "text.npy: cannot be read" in run("text.npy")
    assert "no array for input x; the file has z" in run("other.npz")
    assert "none.npy: no such file" in run("none.npy")
    assert "features: takes no sound" in run(noisy_path())
    assert not (tmp_path / "out.npy").exists()


def test_an_unknown_backend():
    assert "no backend 'gpu'; choose numba or numpy" in refused("run", "--backend", "gpu")


def test_interrupted_it_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("streaming.session.Session.flush", interrupt)
    result = pulse("run", "--backend", "numpy", code=130)
    assert result.stderr == "error: interrupted; no half-written file is left\n"
    assert not list(tmp_path.iterdir())


def test_max_context():
    """Attention to all frames before needs it; then streams up to it are exact and longer ones are refused."""
    path = causal_attention("causal.onnx")
    assert "--max-context" in pulse("run", "--help").stdout
    assert "or give --max-context" in pulse("check", path, "--pulse", 4, code=2).stderr
    found = report(
        "check", path, "--pulse", 4, "--max-context", 20, "--length", 7, "--length", 20, "--length", 21
    )
    assert found["equal"] and found["lengths"] == [7, 20] and found["skipped"] == [21]
    frames = np.random.default_rng(0).standard_normal((1, 21, 4)).astype(np.float32)
    np.save("long.npy", frames)
    assert "at most 20 frames of T" in refused(
        "run", path, "long.npy", "out.npy", "--pulse", 4, "--max-context", 20
    )
    np.save("short.npy", frames[:, :20])
    report("run", path, "short.npy", "out.npy", "--pulse", 4, "--max-context", 20)
    assert np.load("out.npy").shape == (1, 20, 4)


def test_a_name_too_long_for_the_file_system():
    assert "File name too long" in refused("run", noisy_path(), "a" * 300 + ".wav")
    assert "File name too long" in refused("run", "a" * 300 + ".wav")


def test_an_output_that_does_not_stream(tmp_path):
    """The last state of a recurrent model can be written; it has no delay."""
    rng = np.random.default_rng(0)
    weights = {"w": (1, 15, 3), "r": (1, 15, 5)}
    path = save(
        tmp_path / "last.onnx",
        [helper.make_node("GRU", ["x", "w", "r"], ["", "last"], hidden_size=5)],
        {"x": ["T", 1, 3]},
        {"last": [1, 1, 5]},
        {name: rng.standard_normal(shape).astype(np.float32) for name, shape in weights.items()},
    )
    np.save("x.npy", rng.standard_normal((7, 1, 3)).astype(np.float32))
    assert report("run", path, "x.npy", "last.npy", "--pulse", 2, "--output", "last")["delays"] == []
    assert np.load("last.npy").shape == (1, 1, 5)
    assert "algorithmic" not in pulse("run", path, "x.npy", "last.csv", "--pulse", 2).stdout


def test_an_output_that_is_not_finite_is_told(tmp_path):
    path = save(
        tmp_path / "log.onnx",
        [helper.make_node("Log", ["x"], ["y"])],
        {"x": [1, "T"]},
        {"y": [1, "T"]},
    )
    soundfile.write("in.wav", np.array([0.5, 0, -0.5, 0.25], np.float32), 16000)
    result = pulse("run", path, "in.wav", "out.npy", "--pulse", 2)
    assert "warning: 2 values of the output are NaN or infinite" in result.stderr
    assert report("run", path, "in.wav", "out.wav")["nonfinite_values"] == 2
    assert report("run", path, "in.wav", "out.csv")["latency"]["count"] == 0
    assert "came with the flush" in pulse("run", path, "in.wav", "out.csv").stdout


def test_a_rate_below_one_pulse_of_10_ms():
    assert report("convert", "--rate", 1)["pulse_frames"] > 0


def test_dump_of_the_account():
    """Parameters, multiply-adds and memory as a table and as JSON; --json is of this stage alone."""
    told = pulse("dump", "--stage", "account").stdout
    assert told.startswith("denoise: ") and all(
        word in told for word in ("parameters", "a second", "of arena")
    )
    data = json.loads(pulse("dump", "--stage", "account", "--json").stdout)
    assert data["macs_per_second"] > 0 and data["instructions"] > 0 and data["refused"] is None
    assert "--json goes with --stage account" in refused("dump", "--stage", "pulsed", "--json")
    assert "leave out --dot" in refused("dump", "--stage", "account", "--dot")
    assert pulse("dump", "--stage", "pulsed").stdout.startswith("parameters")
