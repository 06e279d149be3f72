"""bf16 and int8 weights on the command line: smaller programs, and an error that is reported."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pulse.cases.build import floats, model, node
from tests.streaming.command import pulse, refusal, report

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Two large matrices over x [T, 48], saved as a model."""
    constants = {name: floats(name, 48, 48) * np.float32(48**-0.5) for name in ("w0", "w1")}
    nodes = [node("MatMul", "x w0", "a"), node("Tanh", "a", "b"), node("MatMul", "b w1", "y")]
    file = tmp_path / "mlp.onnx"
    file.write_bytes(model(nodes, {"x": floats("x", 9, 48)}, constants, stream={"x": 0}).SerializeToString())
    return str(file)


@pytest.mark.parametrize(("form", "min_db"), [("bf16", 40), ("int8", 30)])
def test_check_reports_the_error_and_stays_a_proof_of_f32(path: str, form: str, min_db: int) -> None:
    details = report("check", path, "--weights", form)
    assert details["proof"]["outcome"] == "equal"
    assert details["weights"] == form
    error = details["weight_errors"]["y"]
    assert min_db < error["snr_db"] < 80
    assert 0 < error["largest"] < 0.2
    text = pulse("check", path, "--weights", form, "--length", 9).stdout
    assert f"y in {form}" in text
    assert "dB below the output" in text
    assert "equal: every frame" in text


def test_check_reports_no_error_of_f32(path: str) -> None:
    assert report("check", path, "--length", 9)["weight_errors"] == {}


def test_bench_and_dump_report_the_form(path: str) -> None:
    details = report("bench", path, "--weights", "int8", "--steps", 5, "--rounds", 1)
    assert details["weights"] == "int8"
    sizes = []
    for form in ("f32", "bf16", "int8"):
        header = pulse("dump", path, "--stage", "program", "--weights", form).stdout.splitlines()[0]
        assert f"bytes of weights ({form})" in header
        sizes.append(int(header.split(" bytes of weights")[0].split()[-1]))
    assert 1.8 < sizes[0] / sizes[1] < 2 < 3 < sizes[0] / sizes[2] < 4


@pytest.mark.parametrize(("form", "min_db"), [("bf16", 40), ("int8", 25)])
def test_check_reports_the_error_of_activations(path: str, form: str, min_db: int) -> None:
    """Rounded activations add to the error of rounded weights."""
    both = "--weights", form, "--activations", form
    details = report("check", path, *both)
    assert details["proof"]["outcome"] == "equal"
    assert details["activations"] == form
    weights_db = report("check", path, "--weights", form)["weight_errors"]["y"]["snr_db"]
    assert min_db < details["weight_errors"]["y"]["snr_db"] < weights_db
    assert f"y in {form} weights and activations" in pulse("check", path, *both, "--length", 9).stdout


@pytest.mark.parametrize("form", ["bf16", "int8"])
def test_bench_and_dump_report_activations(path: str, form: str) -> None:
    both = "--weights", form, "--activations", form
    assert report("bench", path, *both, "--steps", 5, "--rounds", 1)["activations"] == form
    listing = pulse("dump", path, "--stage", "program", *both).stdout.splitlines()
    assert f"2 with {form} weights and activations" in listing[0]
    assert "product_of_codes" in listing[1]
    text = pulse("bench", path, *both, "--steps", 5, "--rounds", 1).stdout
    assert f"numba, {form} weights, {form} activations" in text


@pytest.mark.parametrize("form", ["bf16", "int8"])
def test_compiled_programs_keep_activations(path: str, tmp_path: Path, form: str) -> None:
    both, file = ("--weights", form, "--activations", form), tmp_path / "mlp.pulse"
    compiled = report("compile", path, *both, "-o", file)
    assert compiled["activations"] == form
    assert "dB below the output" in compiled["rounding"][0]
    assert report("check", file)["activations"] == form
    np.save("x.npy", floats("sound", 20, 48))
    pulse("run", path, "x.npy", "one.npy", *both)
    pulse("run", file, "x.npy", "two.npy")
    np.testing.assert_array_equal(np.load("one.npy"), np.load("two.npy"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--activations", "int8"), "--activations int8 needs --weights int8, got f32 weights"),
        (
            ("--weights", "int8", "--activations", "bf16"),
            "--activations bf16 needs --weights bf16, got int8 weights",
        ),
        (
            ("--weights", "int8", "--activations", "int4"),
            "no 'int4' activations; choose f32, bf16 or int8",
        ),
        (
            ("--weights", "int8", "--activations", "int8", "--backend", "onnxruntime"),
            "no implementation for onnxruntime",
        ),
    ],
    ids=["of f32 weights", "of another type", "unknown", "of another runtime"],
)
@pytest.mark.parametrize("command", ["bench", "check"])
def test_unsupported_activations_are_refused(
    path: str, options: tuple[Any, ...], text: str, command: str
) -> None:
    assert text in refusal(command, path, *options)


def test_run_takes_forms_of_weights_and_refuses_unknown_ones(path: str) -> None:
    np.save("x.npy", floats("sound", 20, 48))
    outputs = []
    for form in ("f32", "bf16"):
        pulse("run", path, "x.npy", f"{form}.npy", "--weights", form)
        outputs.append(np.load(f"{form}.npy"))
    np.testing.assert_allclose(*outputs, atol=0.05)
    assert not np.array_equal(*outputs)
    error = refusal("run", path, "x.npy", "y.npy", "--weights", "f16")
    assert "unknown weight form 'f16'; choose f32, bf16 or int8" in error
