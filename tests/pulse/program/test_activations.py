"""Activations of int8: the stream equals the offline model with the same rows rounded; the loss is told."""

import numpy as np
import onnx
import pytest

import pulse
from pulse.accuracy import rounding_errors
from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import View
from pulse.models import PulsedModel
from pulse.ops.quantize_rows import RoundRows, round_rows
from pulse.program.backends.native_program import NativeProgram
from pulse.program.backends.rounding import round_offline
from pulse.program.program import Program
from pulse.program.whole import stream_whole
from pulse.proof.signals import feeds_of
from pulse.tolerance import Reference
from tests.pulse.cases.build import floats, model, node
from tests.pulse.program.weight_models import STACKS, recurrence, stack


def in_pulses(proto: onnx.ModelProto, frames: int) -> PulsedModel:
    return pulse.load(proto).pulsify(pulse=frames)


def code_program(model: PulsedModel, backend: str = "numba") -> Program:
    return model.compile(backend, "int8", activations="int8")


def assert_lawful(model: PulsedModel, frames: int, seed: int = 0) -> dict[str, dict[str, Array]]:
    """Both backends give what the offline model of rounded weights and rows gives."""
    feeds = feeds_of(model, frames, seed=seed)
    reference = Reference.of(round_offline(model.typed, "int8", "int8"), feeds)
    results = {backend: stream_whole(code_program(model, backend), feeds) for backend in ("numba", "numpy")}
    for backend, outputs in results.items():
        for port in model.outputs:
            judgement = reference.judge(port.name, outputs[port.name], port.axis)
            assert judgement.agrees, f"{port.name} {backend}: {judgement.share}"
    return results


@pytest.mark.parametrize("name", STACKS)
def test_streams_equal_the_offline_model_of_rounded_rows(name: str) -> None:
    results = assert_lawful(in_pulses(stack(name), 2), 37)
    full = stream_whole(
        in_pulses(stack(name), 2).compile(weights="int8"), feeds_of(in_pulses(stack(name), 2), 37)
    )
    for output, array in results["numba"].items():
        assert np.abs(array - full[output]).max() > 1e-4, "rounded rows change what it gives"


@pytest.mark.parametrize("name", ["matmul", "GRU", "GRU_reset", "LSTM", "RNN"])
def test_the_same_bits_for_every_pulse(name: str) -> None:
    models = [in_pulses(stack(name), frames) for frames in (1, 5, 16)]
    first, *others = (stream_whole(code_program(each), feeds_of(each, 33)) for each in models)
    for other in others:
        for output, array in first.items():
            np.testing.assert_array_equal(other[output], array)


def test_kernels_of_codes_run_the_products_that_take_part() -> None:
    kernels = {
        name: [row.kernel for row in native(code_program(in_pulses(stack(name), 4))).instructions]
        for name in STACKS
    }
    assert kernels["matmul"].count("product_of_codes") == 2
    assert kernels["conv"].count("product_of_codes") == 3 and "product_int8" in kernels["conv"]
    for name in ("GRU", "GRU_reset", "LSTM", "RNN"):
        assert kernels[name][:2] == ["product_of_codes", f"{name.lower()}_of_codes"]


def native(program: Program) -> NativeProgram:
    assert isinstance(program, NativeProgram)
    return program


def test_rows_in_the_bodies_of_scans_are_rounded_too() -> None:
    pulsed = in_pulses(recurrence(), 2)
    assert [row.kernel for row in native(code_program(pulsed)).instructions].count("product_of_codes") == 4
    assert_lawful(pulsed, 9)


def test_readers_that_take_no_codes_get_rounded_floats() -> None:
    """A small GRU beside others reads its rows in another way."""
    weights = {"w": floats("w", 1, 24, 64) / 8, "r": floats("r", 1, 24, 8), "b": floats("b", 1, 48)}
    nodes = [
        node("GRU", "x w r b", "y4 h", hidden_size=8, linear_before_reset=1),
        node("Squeeze", "y4 one", "y"),
    ]
    proto = model(nodes, {"x": floats("x", 9, 1, 64)}, weights | {"one": np.array([1])}, stream={"x": 0})
    pulsed = in_pulses(proto, 3)
    assert_lawful(pulsed, 20)


def test_lanes_equal_streams() -> None:
    for name in ("GRU", "conv"):
        program = code_program(in_pulses(stack(name), 2))
        lanes, states = program.spawn_many(17), [program.spawn() for _ in range(17)]
        (port,) = program.inputs
        for number in range(3):
            x = floats(("lanes", number), 17, *port.shape)
            got = lanes.step(x)
            for i, state in enumerate(states):
                for output, array in state.step(x[i]).items():
                    np.testing.assert_allclose(got[output][i], array, 1e-5, 1e-6)


def test_a_file_has_the_activations() -> None:
    program = native(code_program(in_pulses(stack("LSTM"), 2)))
    stored = Program.load(program.to_bytes())
    assert stored.activations == program.activations == "int8" and stored.form == "int8"
    feeds = feeds_of(program.model, 21)
    for output, array in stream_whole(program, feeds).items():
        np.testing.assert_array_equal(stream_whole(stored, feeds)[output], array)
    with pytest.raises(CompileError, match="weights of int8 and activations of int8; leave out activations"):
        pulse.load(program.to_bytes()).compile(activations="f32")


@pytest.mark.parametrize("name", STACKS)
def test_the_loss_is_reported_and_exceeds_that_of_weights(name: str) -> None:
    pulsed = in_pulses(stack(name), 2)
    weights, both = (
        {error.output: error.snr_db for error in rounding_errors(pulsed, "int8", activations=each)}
        for each in ("f32", "int8")
    )
    for output, snr_db in both.items():
        assert 30 < snr_db < weights[output] + 1


def test_impossible_choices_are_refused() -> None:
    pulsed = in_pulses(stack("matmul"), 2)
    with pytest.raises(CompileError, match="no activations of 'int4'; choose f32 or int8"):
        pulsed.compile(weights="int8", activations="int4")
    for weights in ("f32", "bf16"):
        with pytest.raises(
            CompileError, match=f'activations="int8" needs weights="int8", got weights of {weights}'
        ):
            pulsed.compile(weights=weights, activations="int8")
    proto = model([node("Relu", "x", "y")], {"x": floats("x", 1, 4, 9)}, {}, stream={"x": 2})
    with pytest.raises(CompileError, match="no product of the model takes rows of int8"):
        in_pulses(proto, 2).compile(weights="int8", activations="int8")


def test_a_view_on_another_backend_rounds_the_same_rows() -> None:
    pulsed = in_pulses(stack("matmul"), 2)
    feeds = feeds_of(pulsed, 21)
    whole = stream_whole(code_program(pulsed), feeds)
    last = [node.id for node in pulsed.graph.nodes if node.op.name == "MatMul"][-1]
    pulsed.graph.views["last"] = View({last}, "numpy")
    mixed = code_program(pulsed)
    assert mixed.backend == "numba + numpy" and mixed.activations == "int8"
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
        each.op for each in native(code_program(in_pulses(proto, 2))).nodes if isinstance(each.op, RoundRows)
    ]
    assert len(rounded) == 1


def test_rows_are_rounded_as_documented() -> None:
    x = floats("x", 5, 48)
    x[3], x[4, 0] = 2.0**-97, np.inf
    y = round_rows(x)
    for row, expected in zip(y[:3], x[:3]):
        unit = np.abs(expected).max() / 127
        assert np.abs(row - expected).max() <= unit / 2 * 1.0001
        np.testing.assert_allclose(row / unit, np.rint(row / unit), atol=1e-4)
    assert not y[3].any() and np.isnan(y[4]).all()
    grouped = RoundRows(1, 3).eval([x], {})[0]
    np.testing.assert_array_equal(grouped[:, 16:32], round_rows(np.ascontiguousarray(x[:, 16:32])))
