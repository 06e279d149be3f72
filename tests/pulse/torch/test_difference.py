"""The definition of a difference, and which is the first."""

from collections.abc import Mapping

import numpy as np

from pulse.facts import Array
from pulse.ops.matmul import MatMul
from pulse.proof.tolerance import ExpectedOutputs
from pulse.torch.difference import first_difference
from tests.noise import next_noise
from tests.pulse.model_builder import ModelBuilder


def reference_of(outputs: Mapping[str, Array]) -> ExpectedOutputs:
    """Return a reference with these outputs."""
    return ExpectedOutputs(lambda feeds, arithmetic: dict(outputs), {})


def test_another_order_of_summation_is_not_a_difference() -> None:
    """Sums of large terms that nearly cancel out among them; a wrong element among these is one."""
    builder = ModelBuilder(x="1,T,500")
    rng = np.random.default_rng(0)
    w = next_noise(rng, 500, 3)
    typed = builder.model(builder.add("y", MatMul(), builder["x"], builder.constant(w)), names=["y"])
    x = 30 * next_noise(rng, 1, 64, 500)
    x[0, 7, :250] = -x[0, 7, 250:]
    sums = (x[..., None] * w).cumsum(2, np.float32)[:, :, -1]
    model = ExpectedOutputs.of(typed, {"x": x})
    assert (sums != model.native["y"]).any()
    assert first_difference({"y": sums}, model, {"y": sums[:, :9]}) is None
    sums[0, 7, 1] += 0.1
    difference = first_difference({"y": sums}, model, {"y": sums[:, :9]})
    assert difference is not None
    assert difference.startswith("output y, frame 7, at [0, 7, 1]: the module returns ")


def test_the_first_output_and_frame_that_differ_are_named() -> None:
    """Along the axis that was shorter or longer in the example; an output without one has no frames."""
    x, state = np.zeros((2, 3, 9), np.float32), np.zeros((2, 4), np.float32)
    example = {"y": x[..., :5], "state": state}
    module = {"y": x, "state": state}
    assert first_difference(module, reference_of({"y": x.copy(), "state": state.copy()}), example) is None
    wrong = x.copy()
    wrong[0, 2, 8] = 3
    wrong[1, 1, 6] = -0.5
    difference = first_difference(module, reference_of({"y": wrong, "state": state + 1}), example)
    assert difference == "output y, frame 6, at [1, 1, 6]: the module returns 0, the model -0.5"
    difference = first_difference(module, reference_of({"y": x, "state": state + 1}), example)
    assert difference == "output state, at [0, 0]: the module returns 0, the model 1"
    difference = first_difference({"flag": np.array([True])}, reference_of({"flag": np.array([False])}), {})
    assert difference == "output flag, at [0]: the module returns 1, the model 0"


def test_differing_shapes_and_numbers_of_outputs_are_named() -> None:
    x = np.zeros((1, 9), np.float32)
    difference = first_difference({"y": x, "z": x}, reference_of({"y": x, "z": x[:, :5]}), {})
    assert difference == "output z: the module returns shape [1, 9], the model [1, 5]"
    assert (
        first_difference({"y": x, "output 1": x}, reference_of({"y": x}), {})
        == "the module returns 2 outputs, the model 1"
    )
