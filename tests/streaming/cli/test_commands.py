"""The commands: their files, their reports, and one line for each wrong use."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from onnx import helper

from streaming.builtin import clean_path, model_path, noisy_path
from tests.noise import next_noise, normal_noise
from tests.streaming.command import (
    causal_attention,
    features,
    pulse,
    refusal,
    report,
    save,
    snr_db,
    tone,
    voice,
    whole_axis,
    write_sound,
)
from tests.streaming.models import both_backends

pytestmark = pytest.mark.usefixtures("working_folder")


@both_backends
def test_run_without_arguments_denoises_the_built_in_sound(tmp_path: Path, backend: str) -> None:
    details = report("run", "--backend", backend)
    clean, denoised = soundfile.read(clean_path())[0], soundfile.read(tmp_path / "denoised.wav")[0]
    assert denoised.shape == clean.shape
    assert details["snr_after_db"] == pytest.approx(snr_db(clean, denoised))
    assert details["snr_after_db"] > details["snr_before_db"] + 5
    assert (details["pulse_frames"], details["pulse_ms"], details["rate_from"]) == (160, 10.0, "builtin")
    (delay,) = details["delays"]
    assert (delay["model_frames"], delay["reblocking_frames"], delay["total_frames"]) == (160, 159, 319)
    assert delay["total_ms"] == pytest.approx(319 / 16)
    latency = details["latency"]
    assert latency["count"] == len(clean) // 160
    assert latency["deadline_us"] == pytest.approx(10_000)
    assert 0 < latency["p50_us"] <= latency["p99_us"] <= latency["max_us"]
    assert list(tmp_path.iterdir()) == [tmp_path / "denoised.wav"]


def test_run_prints_delays_times_and_quality() -> None:
    words = pulse("run").stdout
    for part in (
        "319 frames = 19.94 ms: 160 of the model + 159 until a pulse is full",
        "real-time factor",
        "p99.9",
        "SNR",
    ):
        assert part in words


def test_run_writes_the_aligned_offline_result(tmp_path: Path) -> None:
    from pulse import load

    noisy = soundfile.read(noisy_path(), dtype="float32")[0]
    write_sound("in.wav", noisy, subtype="FLOAT")
    pulse("run", model_path(), "in.wav", "out.wav", "--pulse", 320)
    offline = load(model_path()).analyse().run(noisy[None])["denoised"][0]
    assert soundfile.info("out.wav").subtype == "FLOAT"
    np.testing.assert_allclose(soundfile.read("out.wav")[0], offline, atol=1e-6)


def test_stereo_at_44_khz_through_a_16_khz_model_stays_aligned() -> None:
    rate, at = 44100, 30_000
    sound = np.stack([tone(rate, 1.0), np.zeros(rate)], axis=1)
    sound[at : at + 20, 1] = 0.5
    write_sound("in.wav", sound, rate)
    details = report("run", "in.wav", "out.wav", "--channel", "each")
    out, rate_out = soundfile.read("out.wav")
    assert (out.shape, rate_out) == (sound.shape, rate)
    assert (details["streams"], details["file_rate_hz"], details["rate_hz"]) == (2, rate, 16000)
    click = out[at - 200 : at + 200, 1]
    middle = np.sum(np.arange(400) * click**2) / np.sum(click**2)
    assert middle == pytest.approx(209.5, abs=2)


@pytest.mark.parametrize(("channel", "expected"), [("mix", 0.5), ("0", 1.0), ("1", 0.0)])
def test_two_channels_become_one_stream_as_chosen(tmp_path: Path, channel: str, expected: float) -> None:
    left = tone(8000)
    write_sound("in.wav", np.stack([left, np.zeros_like(left)], axis=1), 8000, subtype="FLOAT")
    model = voice(tmp_path / "voice.onnx")
    pulse("run", model, "in.wav", "out.wav", "--output", "same", "--channel", channel, "--backend", "numpy")
    np.testing.assert_allclose(soundfile.read("out.wav")[0], expected * left, atol=1e-6)


def test_frames_other_than_sound_get_their_times(tmp_path: Path) -> None:
    model = voice(tmp_path / "voice.onnx")
    write_sound("in.wav", tone(8000), 8000, subtype="FLOAT")
    report("run", model, "in.wav", "level.csv", "--output", "level", "--backend", "numpy")
    lines = (tmp_path / "level.csv").read_text().splitlines()
    assert lines[0] == "time_s,value"
    assert [line.split(",")[0] for line in lines[1:4]] == ["0.000", "0.010", "0.020"]
    values = [float(line.split(",")[1]) for line in lines[1:]]
    np.testing.assert_allclose(values, tone(8000).reshape(-1, 80).mean(1), atol=1e-6)
    assert "output level is not audio" in refusal(
        "run", model, "in.wav", "o.wav", "--output", "level", "--backend", "numpy"
    )


def test_features_are_read_from_npy_and_written_to_npy_and_csv(tmp_path: Path) -> None:
    model = features(tmp_path / "features.onnx")
    x = np.random.default_rng(0).standard_normal((1, 11, 4))
    np.save("x.npy", x)
    details = report("run", model, "x.npy", "y.npy", "--pulse", "4", "--backend", "numpy")
    expected = x @ np.arange(8).reshape(4, 2)
    np.testing.assert_allclose(np.load("y.npy"), expected, rtol=1e-4, atol=1e-5)
    assert (details["frames"], details["rate_hz"], details["real_time_factor"]) == (11, None, None)
    np.savez("x.npz", x=x.astype(np.float32))
    pulse("run", model, "x.npz", "y.csv", "--backend", "numpy")
    rows = np.loadtxt("y.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(rows, np.column_stack([np.arange(11), expected[0]]), rtol=1e-4, atol=1e-5)


def test_convert_lists_ports_buffers_and_nodes() -> None:
    details = report("convert", "--pulse", "320")
    assert [port["shape"] for port in details["inputs"]] == [[1, 320]]
    assert details["outputs"][0]["delay_frames"] == 160
    assert details["buffer_bytes"] == sum(buffer["bytes"] for buffer in details["buffers"]) > 0
    assert {"spectrum", "spectrum.window"} <= {node["node"] for node in details["nodes"]}
    words = pulse("convert").stdout
    assert "pulse              160 frames = 10.00 ms" in words
    assert "spectrum.window" in words


def test_check_runs_with_onnxruntime_as_the_backend() -> None:
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    proof = report("check", "--backend", "onnxruntime", "--length", "1000")["proof"]
    assert proof["outcome"] == "equal"
    assert proof["backends"] == ["numpy", "onnxruntime"]
    assert report("run", "--backend", "onnxruntime")["backend"] == "onnxruntime"


@both_backends
def test_check_proves_the_built_in_model(backend: str) -> None:
    proof = report("check", "--backend", backend, "--length", "5", "--length", "1000")["proof"]
    assert proof["outcome"] == "equal"
    assert proof["divergence"] is None
    assert proof["lengths"] == [5, 1000]
    assert proof["backends"] == list(dict.fromkeys(["numpy", backend]))
    assert (proof["error"] > 0) == (backend == "numba")
    assert proof["share"] <= 1
    assert proof["spent_s"] > 0
    (output,) = proof["outputs"]
    assert output["proved"]
    assert output["moved"]
    assert output["values"] == output["finite"] == 2010


def test_counts_of_one_are_singular() -> None:
    model = save("one.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": [1, "T"]}, {"y": [1, "T"]})
    exported = pulse("convert", model, "--pulse", 1, "-o", "pulsed.onnx").stdout
    assert "pulsed.onnx: opset 17, 1 node, 0 states, " in exported
    checked = pulse("check", model, "--length", 3, "--backend", "numpy").stdout
    assert "2 of 3 frames: " in checked
    assert "depends on 1 frame;" in checked
    assert "one, typed: 2 nodes" in pulse("dump", model, "--stage", "typed").stdout


def test_reports_in_pipes_have_no_trailing_spaces() -> None:
    for arguments in (("run", "--backend", "numpy"), ("convert",), ("dump",)):
        lines = pulse(*arguments).stdout.splitlines()
        assert [line for line in lines if line != line.rstrip()] == []


def test_check_prints_that_every_frame_is_equal() -> None:
    assert "equal: every frame" in pulse("check", "--backend", "numpy", "--length", "5").stdout


def test_check_names_the_wire_and_exits_1_where_a_frame_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    from pulse.ops.time import Delay

    class Late(Delay):
        def initial_state(self):
            return [array + 1 for array in super().initial_state()]

    monkeypatch.setattr("pulse.pulsify.graph_builder.Delay", Late)
    result = pulse("check", "--backend", "numpy", "--length", "500", code=1)
    assert "error: spectrum" in result.stderr
    assert "diverges at frame 0 of a stream of 500" in result.stderr
    details = json.loads(pulse("check", "--backend", "numpy", "--length", "500", "--json", code=1).stdout)[
        "proof"
    ]
    assert details["outcome"] == "diverged"
    assert details["divergence"]["backend"] == "numpy"


@both_backends
def test_bench_measures_every_step(backend: str) -> None:
    details = report("bench", "--backend", backend, "--steps", "20", "--rounds", "2")
    assert details["latency"]["count"] == 40
    assert [part["count"] for part in details["rounds"]] == [20, 20]
    assert sum(row["count"] for row in details["histogram"]) == 40
    if backend == "numpy":
        assert details["profile"] is None
    else:
        costs = [row["us_per_step"] for row in details["profile"]]
        assert costs == sorted(costs, reverse=True)
        assert sum(row["share"] for row in details["profile"]) == pytest.approx(1)
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
def test_dump_shows_every_stage(stage: str, part: str) -> None:
    assert part in pulse("dump", "--stage", stage).stdout
    assert pulse("dump", "--stage", stage, "--dot").stdout.startswith("digraph ")


@pytest.mark.parametrize(
    ("stage", "query", "part"), [("load", "Conv->$", "Conv) -> "), ("pulsed", "Delay->Conv", "Delay) -> ")]
)
def test_dump_shows_the_parts_that_fit_a_query(stage: str, query: str, part: str) -> None:
    text = pulse("dump", "--stage", stage, "--match", query).stdout
    assert part in text
    assert text.rstrip().endswith(query)
    assert "0 parts fit Softmax" in pulse("dump", "--stage", "typed", "--match", "Softmax").stdout
    assert "omit --dot" in refusal("dump", "--stage", stage, "--match", query, "--dot")
    assert "an operator, $ or a bracket is expected" in refusal("dump", "--match", "Conv->")


def test_dump_shows_the_instructions_of_a_program() -> None:
    assert "numpy backend has no instructions" in refusal("dump", "--stage", "program", "--backend", "numpy")
    text = pulse("dump", "--stage", "program").stdout
    assert "instructions" in text
    assert text.endswith("lanes (spawn_many): groups of 16 share one memory\n")
    last = pulse("dump", "--stage", "program", "--weights", "int8").stdout.splitlines()[-1]
    assert last == "lanes (spawn_many): each has its own memory: band_power: weights that are not f32"


def test_version_and_help_are_printed() -> None:
    assert pulse("-v").stdout.startswith("pulse ")
    assert "pulse run --live" in pulse("--help").stdout


@pytest.mark.parametrize("command", ["run", "convert", "check", "bench", "dump", "devices", "report"])
def test_the_help_of_a_command_has_examples(command: str) -> None:
    assert "Examples" in pulse(command, "--help").stdout


def test_the_rate_is_the_models_or_given_or_assumed(tmp_path: Path) -> None:
    plain = save(tmp_path / "p.onnx", [helper.make_node("Neg", ["x"], ["y"])], {"x": ["T"]}, {"y": ["T"]})
    wrong = features(tmp_path / "wrong.onnx", {"sample_rate": "fast"})

    def rate(*arguments):
        details = report("convert", *arguments)
        return details["rate_hz"], details["rate_from"], details["pulse_frames"]

    assert rate(voice(tmp_path / "v.onnx")) == (8000, "model", 80)
    assert rate(plain) == (16000, "default", 160)
    assert rate(plain, "--rate", "44100") == (44100, "option", 441)
    assert rate(features(tmp_path / "f.onnx")) == (None, None, 1)
    assert "sample_rate 'fast'" in refusal("convert", wrong)


def test_an_interrupted_run_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("streaming.session.Session.flush", interrupt)
    result = pulse("run", "--backend", "numpy", code=130)
    assert result.stderr == "error: interrupted; only complete results are written\n"
    assert not list(tmp_path.iterdir())


def test_a_model_with_a_max_context_is_proved_up_to_it() -> None:
    """Attention to all frames before needs it; then streams up to it are exact and longer ones are refused."""
    path = causal_attention("causal.onnx")
    assert "--max-context" in pulse("run", "--help").stdout
    assert "or give --max-context" in pulse("check", path, "--pulse", 4, code=2).stderr
    details = report(
        "check", path, "--pulse", 4, "--max-context", 20, "--length", 7, "--length", 20, "--length", 21
    )
    proof = details["proof"]
    assert proof["outcome"] == "equal"
    assert proof["lengths"] == [7, 20]
    assert proof["skipped"] == [21]
    frames = normal_noise(1, 21, 4)
    np.save("long.npy", frames)
    assert "at most 20 frames of T" in refusal(
        "run", path, "long.npy", "out.npy", "--pulse", 4, "--max-context", 20
    )
    np.save("short.npy", frames[:, :20])
    report("run", path, "short.npy", "out.npy", "--pulse", 4, "--max-context", 20)
    assert np.load("out.npy").shape == (1, 20, 4)


def test_bench_begins_new_streams_at_the_longest_one() -> None:
    path = causal_attention("causal.onnx")
    options = ("--pulse", 4, "--max-context", 20, "--steps", 7, "--rounds", 2)
    assert report("bench", path, *options)["latency"]["count"] == 14


def test_a_name_too_long_for_the_file_system_is_refused() -> None:
    assert "File name too long" in refusal("run", noisy_path(), "a" * 300 + ".wav")
    assert "File name too long" in refusal("run", "a" * 300 + ".wav")


def test_outputs_that_do_not_stream_have_no_delay(tmp_path: Path) -> None:
    """The last state of a recurrent model can be written; it has no delay."""
    rng = np.random.default_rng(0)
    weights = {"w": (1, 15, 3), "r": (1, 15, 5)}
    path = save(
        tmp_path / "last.onnx",
        [helper.make_node("GRU", ["x", "w", "r"], ["", "last"], hidden_size=5)],
        {"x": ["T", 1, 3]},
        {"last": [1, 1, 5]},
        {name: next_noise(rng, *shape) for name, shape in weights.items()},
    )
    np.save("x.npy", next_noise(rng, 7, 1, 3))
    assert report("run", path, "x.npy", "last.npy", "--pulse", 2, "--output", "last")["delays"] == []
    assert np.load("last.npy").shape == (1, 1, 5)
    assert "algorithmic" not in pulse("run", path, "x.npy", "last.csv", "--pulse", 2).stdout


def test_outputs_that_are_not_finite_are_reported(tmp_path: Path) -> None:
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


def test_a_pulse_has_at_least_a_frame_at_any_rate(tmp_path: Path) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    model = save(tmp_path / "m.onnx", nodes, {"x": ["T"]}, {"y": ["T"]})
    assert report("convert", model, "--rate", 1)["pulse_frames"] == 1


@pytest.mark.filterwarnings("always")
def test_a_rate_that_contradicts_the_model_is_reported(tmp_path: Path) -> None:
    """The model is the built-in one, or one whose metadata has a rate."""
    described = pulse("convert", "--rate", 8000)
    assert (
        "warning: the built-in model is made for 16000 Hz; --rate 8000 would shift all frequencies"
        in described.stderr
    )
    assert json.loads(pulse("convert", "--rate", 8000, "--json").stdout)["rate_from"] == "option"
    other_rate = pulse("convert", voice(tmp_path / "v.onnx"), "--rate", 16000)
    assert "by its metadata the model is made for 8000 Hz; --rate 16000" in other_rate.stderr
    assert "warning" not in pulse("convert", "--rate", 16000).stderr
    assert "warning" not in pulse("convert", tmp_path / "v.onnx", "--rate", 8000).stderr


def test_dump_prints_costs_as_table_and_json() -> None:
    table = pulse("dump", "--stage", "costs").stdout
    assert table.startswith("denoise\n")
    assert all(word in table for word in ("parameters", "per second", "of arena"))
    data = json.loads(pulse("dump", "--stage", "costs", "--json").stdout)
    assert data["macs_per_second"] > 0
    assert data["instructions"] > 0
    assert data["refused"] is None
    assert pulse("dump", "--stage", "pulsed").stdout.startswith("parameters")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stage", "pulsed", "--json"], "--json and --markdown go with --stage costs"),
        (["--stage", "costs", "--dot"], "omit --dot"),
        (["--stage", "foo"], "--stage: unknown stage 'foo'; choose one of load, typed"),
    ],
    ids=["--json", "--dot", "unknown stage"],
)
def test_stages_and_formats_of_dump_that_do_not_fit_are_refused(arguments: list[str], message: str) -> None:
    assert message in refusal("dump", *arguments)


def test_check_that_proves_nothing_exits_3() -> None:
    """An output that the input never moves: reported, in text and as JSON; convert writes the file all the same."""
    nodes = [
        helper.make_node("Mul", ["x", "zero"], ["flat"], "flat"),
        helper.make_node("Neg", ["x"], ["y"], "y"),
    ]
    path = save(
        "flat.onnx", nodes, {"x": [1, "T"]}, {"flat": [1, "T"], "y": [1, "T"]}, {"zero": np.float32(0)}
    )
    result = pulse("check", path, "--pulse", 4, code=3)
    assert "error: nothing was proved about flat: it is always 0, whatever the input" in result.stderr
    assert "does not depend on the input" in result.stdout
    assert "depends on the input" in result.stdout
    assert "equal: every frame" not in result.stdout
    proof = json.loads(pulse("check", path, "--pulse", 4, "--json", code=3).stdout)["proof"]
    assert [output["proved"] for output in proof["outputs"]] == [False, True]
    converted = pulse("convert", path, "--pulse", 4, "-o", "out.onnx", code=3)
    assert "nothing was proved about flat" in converted.stderr
    assert "out.onnx: opset 17" in converted.stdout
    pulse("check", path, "--pulse", 4, "--keep", "y", "--seed", 5, "--long")


@pytest.mark.parametrize(
    ("arguments", "kinds", "words"),
    [
        (["check", "nowhere.onnx"], {"LoadError"}, "nowhere.onnx: no such file"),
        (["check", "--pulse", "ten"], {"BadParameter"}, "--pulse"),
        (["convert", "--nothing"], {"NoSuchOption"}, "--nothing"),
        (["chekc"], {"UsageError", "NoSuchCommand"}, "Did you mean 'check'?"),
    ],
)
def test_errors_are_json_where_reports_are(arguments: list[str], kinds: set[str], words: str) -> None:
    """The document is on stdout, the line on stderr as always; older versions of typer name an error differently."""
    result = pulse(*arguments, "--json", code=2)
    error = json.loads(result.stdout)["error"]
    assert error["type"] in kinds
    assert words in error["message"]
    assert error["refusals"] == []
    assert result.stderr == f"error: {error['message']}\n"


def test_refusals_are_json_too() -> None:
    """Node, axis, relation, reason and way out of each."""
    error = json.loads(pulse("convert", whole_axis("whole.onnx"), "--json", code=2).stdout)["error"]
    (refusal,) = error["refusals"]
    assert (refusal["node"], refusal["op"], refusal["axis"], refusal["relation"]) == (
        "y",
        "softmax",
        1,
        "whole",
    )
    assert refusal["reason"]
    assert refusal["advice"]
