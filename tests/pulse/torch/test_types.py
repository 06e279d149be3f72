"""Modules in f64, f16 and bf16 become models in f32; wide sums of PyTorch are held against f64."""

import importlib.util
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import InputError, LoadError
from pulse.facts import Array
from pulse.ops.arithmetic import Arithmetic
from pulse.torch.comparison import Comparison
from pulse.torch.inputs import SampledInputs

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None,
    reason="PyTorch and onnxscript are an extra: pip install 'pulse-stream[torch]'",
)


@needs_torch
@pytest.mark.parametrize("name", ["float64", "float16", "bfloat16"])
def test_a_module_of_another_type_becomes_a_model_in_f32(name: str) -> None:
    import torch

    torch.manual_seed(0)
    dtype = getattr(torch, name)
    module = (
        torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.BatchNorm1d(3), torch.nn.GELU())
        .to(dtype)
        .eval()
    )
    before = {key: (value.dtype, value.clone()) for key, value in module.state_dict().items()}
    with pytest.warns(pulse.PulseWarning, match=rf"computes in {name}; the model computes in f32"):
        model = pulse.from_torch(module, torch.randn(1, 2, 12).to(dtype), {0: {2: "T"}})
    typed = model.analyse().declutter()
    assert [str(fact) for fact in typed.inputs.values()] == ["1,2,T,f32"]
    pulse.verify(typed, pulse=1).require()
    for key, value in module.state_dict().items():
        assert value.dtype == before[key][0]
        assert torch.equal(value, before[key][1])
    assert torch.get_default_dtype() == torch.float32


@needs_torch
def test_wide_layers_with_normalised_weights_are_converted() -> None:
    """4,194,304 weights are computed before running; PyTorch's own sums of 4,096 products are off by 5e-6."""
    import torch

    torch.manual_seed(0)
    module = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(1024, 1024, 4))
    x = torch.randn(1, 1024, 12)
    typed = pulse.from_torch(module, x, {0: {2: "T"}}).analyse().declutter()
    (y,) = typed.run(x.numpy()).values()
    np.testing.assert_allclose(y, module(x).detach().numpy(), rtol=0, atol=2e-5)
    typed.pulsify(pulse=1).compile()


def comparison(module: float, precise: float | Exception | None) -> Comparison:
    """A module that adds a number to its input, and adds another one in f64; the model adds 1."""

    def runs(number: float) -> Any:
        return lambda feeds: {"y": feeds["x"] + np.asarray(number, feeds["x"].dtype)}

    def model(feeds: Any, arithmetic: Arithmetic) -> dict[str, Array]:
        return {"y": arithmetic.take_input(np.asarray(feeds["x"])) + 1}

    def fails(feeds: dict[str, Array]) -> dict[str, Array]:
        raise InputError("Float and Double")

    exact = None if precise is None else fails if isinstance(precise, Exception) else runs(precise)
    samples = {"x": SampledInputs(np.random.default_rng(0).normal(size=12).astype(np.float32), {0: "T"})}
    return Comparison("Adder", runs(module), model, samples, "axis 0 of x (T)", precise=exact)


def test_the_module_in_f64_decides() -> None:
    assert comparison(1, None).require_equal() == []
    assert comparison(1.001, 1.0).require_equal() == []
    for precise in (None, 1.001, InputError()):
        with pytest.raises(LoadError, match="differs from the module on the example itself"):
            comparison(1.001, precise).require_equal()
