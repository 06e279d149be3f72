"""int8 and bf16 activations: the stream equals the offline model with the same rows rounded, the loss is known."""

import itertools
from typing import Any

import numpy as np
import onnx
import pytest

import pulse
from pulse.accuracy import rounding_losses
from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import View
from pulse.models import PulsedModel
from pulse.ops.quantize_activations import RoundActivations, round_to_form
from pulse.program.backends.weight_rounding import round_offline
from pulse.program.native.native_program import NativeProgram
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole
from pulse.proof.tolerance import ExpectedOutputs
from pulse.proof.trial_signals import draw_feeds
from pulse.rounding import Rounding
from tests.pulse.cases.build import floats, model, node
from tests.pulse.program.weight_models import STACKS, assert_lanes_agree_with_streams, recurrence, stack

FORMS = ("int8", "bf16")


def in_pulses(proto: onnx.ModelProto, frames: int) -> PulsedModel:
    return pulse.load(proto).pulsify(pulse=frames)


def code_program(model: PulsedModel, backend: str = "numba", form: str = "int8") -> Program:
    return model.compile(backend, weights=form, activations=form)


def assert_agrees_with_offline(model: PulsedModel, frames: int, form: str) -> dict[str, dict[str, Array]]:
    """Both backends give what the offline model of rounded weights and rows gives."""
    feeds = draw_feeds(model, frames, seed=0)
    reference = ExpectedOutputs.of(round_offline(model.typed, Rounding(form, form)), feeds)
    results = {
        backend: stream_whole(code_program(model, backend, form), feeds) for backend in ("numba", "numpy")
    }
    for backend, outputs in results.items():
        for port in model.outputs:
            judgement = reference.judge(port.name, outputs[port.name], port.axis)
            assert judgement.agrees, f"{port.name} {backend}: {judgement.share}"
    return results


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STACKS)
def test_streams_agree_with_the_offline_model_of_rounded_rows(name: str, form: str) -> None:
    pulsed = in_pulses(stack(name), 2)
    results = assert_agrees_with_offline(pulsed, 37, form)
    full = stream_whole(pulsed.compile(weights=form), draw_feeds(pulsed, 37))
    for output, array in results["numba"].items():
        assert np.abs(array - full[output]).max() > 1e-4, "rounded rows change what it gives"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["matmul", "GRU", "GRU_reset", "LSTM", "RNN"])
def test_every_pulse_gives_the_same_bits(name: str, form: str) -> None:
    models = [in_pulses(stack(name), frames) for frames in (1, 5, 16)]
    first, *others = (
        stream_whole(code_program(pulsed, form=form), draw_feeds(pulsed, 33)) for pulsed in models
    )
    for other in others:
        for output, array in first.items():
            np.testing.assert_array_equal(other[output], array)


@pytest.mark.parametrize(("form", "ending"), [("int8", ""), ("bf16", "_bf16")])
def test_kernels_of_codes_run_the_products_that_take_part(form: str, ending: str) -> None:
    programs = {name: assert_native(code_program(in_pulses(stack(name), 4), form=form)) for name in STACKS}
    kernels = {name: [row.kernel for row in program.instructions] for name, program in programs.items()}
    product = f"product_of_codes{ending}"
    assert kernels["matmul"].count(product) == 2
    assert kernels["conv"].count(product) == 3
    assert f"product_{form}" in kernels["conv"]
    for name in ("GRU", "GRU_reset", "LSTM", "RNN"):
        assert kernels[name][:2] == [product, f"{name.lower()}_of_codes{ending}"]
    assert f"2 with {form} weights and activations" in programs["GRU"].listing()[0]


def test_neighbouring_taps_of_bf16_are_one_row() -> None:
    """They have no scale of their own, so a dense window is multiplied at once."""
    nodes, k = [node("Conv", "x k", "y", pads=[2, 0])], floats("k", 48, 40, 3) / 8
    pulsed = in_pulses(model(nodes, {"x": floats("x", 1, 40, 9)}, {"k": k}, stream={"x": 2}), 4)
    sizes = {
        form: assert_native(code_program(pulsed, form=form)).instructions[0].instruction for form in FORMS
    }
    taps = {
        form: [value for name, value in row.fields_by_name() if name in "TK"] for form, row in sizes.items()
    }
    assert taps == {"int8": [3, 40], "bf16": [1, 120]}
    assert_agrees_with_offline(pulsed, 21, "bf16")


def assert_native(program: Program) -> NativeProgram:
    assert isinstance(program, NativeProgram)
    return program


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_the_bodies_of_scans_are_rounded_too(form: str) -> None:
    pulsed = in_pulses(recurrence(), 2)
    kernels = [row.kernel for row in assert_native(code_program(pulsed, form=form)).instructions]
    assert sum(kernel.startswith("product_of_codes") for kernel in kernels) == 4
    assert_agrees_with_offline(pulsed, 9, form)


@pytest.mark.parametrize("form", FORMS)
def test_readers_that_take_no_codes_get_rounded_floats(form: str) -> None:
    """Small GRUs side by side read their rows in another way."""
    weights, nodes = {"one": np.array([1])}, list[onnx.NodeProto]()
    for i in "01":
        weights |= {f"w{i}": floats(f"w{i}", 1, 24, 64) / 8, f"r{i}": floats("r", 1, 24, 8)}
        nodes.append(node("GRU", f"x w{i} r{i}", f"four{i} h{i}", hidden_size=8, linear_before_reset=1))
        nodes.append(node("Squeeze", f"four{i} one", f"y{i}"))
    nodes.append(node("Concat", "y0 y1", "y", axis=2))
    proto = model(nodes, {"x": floats("x", 9, 1, 64)}, weights, stream={"x": 0})
    pulsed = in_pulses(proto, 3)
    assert "quantize" in [row.kernel for row in assert_native(code_program(pulsed, form=form)).instructions]
    assert_agrees_with_offline(pulsed, 20, form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["GRU", "conv"])
def test_lanes_agree_with_streams(form: str, name: str) -> None:
    assert_lanes_agree_with_streams(code_program(in_pulses(stack(name), 2), form=form), 17, 1e-5, 1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_keeps_the_form_of_the_activations(form: str) -> None:
    program = assert_native(code_program(in_pulses(stack("LSTM"), 2), form=form))
    stored = Program.load(program.to_bytes())
    assert stored.activations == program.activations == stored.form == form
    feeds = draw_feeds(program.model, 21)
    for output, array in stream_whole(program, feeds).items():
        np.testing.assert_array_equal(stream_whole(stored, feeds)[output], array)
    with pytest.raises(CompileError, match=f"{form} weights and {form} activations; omit activations"):
        pulse.load(program.to_bytes()).compile(activations="f32")


@pytest.mark.parametrize(("form", "min_db"), [("int8", 30), ("bf16", 42)])
@pytest.mark.parametrize("name", STACKS)
def test_the_loss_is_reported_and_exceeds_that_of_weights(name: str, form: str, min_db: int) -> None:
    pulsed = in_pulses(stack(name), 2)
    weights, both = (
        {error.output: error.snr_db for error in rounding_losses(pulsed, form, activations=activations)}
        for activations in ("f32", form)
    )
    for output, snr_db in both.items():
        assert min_db < snr_db < weights[output] + 1


def test_unknown_activations_are_refused() -> None:
    with pytest.raises(CompileError, match="no 'int4' activations; choose f32, bf16 or int8"):
        in_pulses(stack("matmul"), 2).compile(weights="int8", activations="int4")


@pytest.mark.parametrize(
    ("weights", "form"),
    [pair for pair in itertools.permutations(("f32", "bf16", "int8"), 2) if pair[1] != "f32"],
)
def test_activations_and_weights_of_different_forms_are_refused(weights: str, form: str) -> None:
    needs = f'activations="{form}" needs weights="{form}", got {weights} weights'
    with pytest.raises(CompileError, match=needs):
        in_pulses(stack("matmul"), 2).compile(weights=weights, activations=form)


@pytest.mark.parametrize("form", FORMS)
def test_activations_without_a_product_are_refused(form: str) -> None:
    proto = model([node("Relu", "x", "y")], {"x": floats("x", 1, 4, 9)}, {}, stream={"x": 2})
    with pytest.raises(CompileError, match=f"no product of the model takes rows of {form}"):
        in_pulses(proto, 2).compile(weights=form, activations=form)


def test_weights_that_f16_holds_keep_their_activations() -> None:
    """They stay f16, without loss, when bf16 is asked for."""
    w = floats("w", 64, 48).astype(np.float16).astype(np.float32)
    proto = model([node("MatMul", "x w", "y")], {"x": floats("x", 9, 64)}, {"w": w}, stream={"x": 0})
    with pytest.raises(CompileError, match="whose weights f16 does not hold exactly; omit activations"):
        in_pulses(proto, 2).compile(weights="bf16", activations="bf16")


@pytest.mark.parametrize("form", FORMS)
def test_a_view_on_another_backend_rounds_the_same_rows(form: str) -> None:
    pulsed = in_pulses(stack("matmul"), 2)
    feeds = draw_feeds(pulsed, 21)
    whole = stream_whole(code_program(pulsed, form=form), feeds)
    last = [node.id for node in pulsed.graph.nodes if node.op.name == "MatMul"][-1]
    pulsed.graph.views["last"] = View({last}, "numpy")
    mixed = code_program(pulsed, form=form)
    assert mixed.backend == "numba + numpy"
    assert mixed.activations == form
    for output, array in stream_whole(mixed, feeds).items():
        np.testing.assert_allclose(array, whole[output], 1e-5, 1e-6)


def test_codes_of_the_author_keep_their_activations() -> None:
    """Weights that are whole numbers belong to activations that are whole numbers, of any size."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-127, 128, (64, 32)).astype(np.float32)
    weights = {"codes": codes, "w": floats("w", 32, 64) / 8}
    nodes = [node("MatMul", "x codes", "a"), node("MatMul", "a w", "y")]
    proto = model(nodes, {"x": floats("x", 9, 64)}, weights, stream={"x": 0})
    rounded = [
        pulsed.op
        for pulsed in assert_native(code_program(in_pulses(proto, 2))).nodes
        if isinstance(pulsed.op, RoundActivations)
    ]
    assert len(rounded) == 1


def test_rows_are_rounded_as_documented() -> None:
    x = floats("x", 5, 48)
    x[3], x[4, 0] = 2.0**-97, np.inf
    y = round_to_form(x)
    for row, expected in zip(y[:3], x[:3]):
        scale = np.abs(expected).max() / 127
        assert np.abs(row - expected).max() <= scale / 2 * 1.0001
        np.testing.assert_allclose(row / scale, np.rint(row / scale), atol=1e-4)
    assert not y[3].any()
    assert np.isnan(y[4]).all()
    grouped = RoundActivations(1, 3).eval([x], {})[0]
    np.testing.assert_array_equal(grouped[:, 16:32], round_to_form(np.ascontiguousarray(x[:, 16:32])))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bf16_rounds_each_element_to_the_nearest(dtype: type[np.floating[Any]]) -> None:
    x = np.array([[1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, np.inf, -np.inf, np.nan]])
    expected = [[1, 1 + 2**-6, 1 + 2**-7, np.inf, -np.inf, np.nan]]
    (y,) = RoundActivations(1, 1, "bf16").eval([x.astype(dtype)], {})
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, expected)
