"""A module as an oracle: what goes in and out as arrays, and that nothing remains changed."""

from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError, LoadError
from pulse.torch.arguments import read_call
from pulse.torch.module import ModuleOracle, samples
from pulse.torch.preservation import preserve_state

torch: Any = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'pulse-stream[torch]'")
nn = torch.nn


class ForwardModule(nn.Module):
    """A module with a forward that is given."""

    def __init__(self, forward: Any) -> None:
        super().__init__()
        self.function = forward

    def forward(self, x: Any, y: Any = None) -> Any:
        return self.function(x, y)


class Stateful(nn.Module):
    """State in every place where it can be: each run changes all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("written", torch.zeros(3))
        self.register_buffer("replaced", torch.zeros(3))
        self.register_buffer("missing", None)
        self.weight = nn.Parameter(torch.ones(3))
        self.attribute = torch.zeros(3)
        self.cache = {"h": torch.zeros(3), "deep": [torch.zeros(3), (torch.zeros(3),)]}
        self.steps: list[int] = []
        self.count = 0
        self.inner = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)).train()

    def forward(self, x: Any) -> Any:
        state = self.written + self.replaced + self.attribute + self.weight + self.cache["h"]
        state = state + self.cache["deep"][0] + self.cache["deep"][1][0] + self.count + len(self.steps)
        state = state + (0 if self.missing is None else self.missing)
        with torch.no_grad():
            for tensor in (self.written, self.weight, self.cache["deep"][0], self.cache["deep"][1][0]):
                tensor.add_(1)
        self.replaced = self.replaced + 1
        self.missing = torch.ones(3)
        self.attribute = self.attribute + 1
        self.cache["h"] = self.cache["h"] + 1
        self.cache["new"] = self.cache["deep"]
        self.steps.append(1)
        self.count += 1
        x.mul_(2)
        return self.inner(x) + state[:, None] + torch.rand(1)


def oracle(module: Any, example: Any, outputs: Any = ("y",), dynamic: Any = None) -> Any:
    """The module's oracle without an export, and the samples of all its inputs."""
    call = read_call(torch, module, "M", example, dynamic or {})
    names = [name for name, leaf in call.leaves(torch).items() if torch.is_tensor(leaf)]
    with preserve_state(torch, module, call) as state:
        return ModuleOracle(torch, module, call, state.restore_eval, outputs), samples(
            torch, call, names, "Net"
        )


def run_twice(module: Any, x: Any) -> list[Any]:
    """The outputs of two runs, after which the state is as before; the module is as after one run in between."""
    call = read_call(torch, module, "M", x, {})
    with preserve_state(torch, module, call) as state:
        run = ModuleOracle(torch, module, call, state.restore_eval, ["y"])
        outputs = [run({"x": x.numpy()})["y"] for _ in range(2)]
        assert (module.count, module.steps) == (1, [1])
        assert module.missing is not None
        assert not any(inner.training for inner in module.modules())
    return outputs


def test_each_run_begins_again() -> None:
    """All but the one random number is the same."""
    first, second = run_twice(Stateful().eval(), torch.randn(4, 3, 5))
    np.testing.assert_allclose(first - second, np.full(first.shape, (first - second).flat[0]), atol=1e-6)
    assert first.flat[0] != second.flat[0]


def test_parameters_and_buffers_are_as_before() -> None:
    module = Stateful().eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    run_twice(module, torch.randn(4, 3, 5))
    assert sorted(before) == sorted(module.state_dict())
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_attributes_are_the_same_objects_as_before() -> None:
    module = Stateful().eval()

    def parts() -> list[Any]:
        cache = module.cache
        return [module.written, module.weight, module.attribute, cache, cache["deep"], module.steps]

    before = parts()
    run_twice(module, torch.randn(4, 3, 5))
    assert all(earlier is other for earlier, other in zip(before, parts()))


def test_attributes_have_the_contents_of_before() -> None:
    module = Stateful().eval()
    run_twice(module, torch.randn(4, 3, 5))
    assert (module.missing, module.count, module.steps) == (None, 0, [])
    assert list(module.cache) == ["h", "deep"]
    for tensor in (module.attribute, module.cache["h"], module.cache["deep"][0], module.cache["deep"][1][0]):
        assert torch.equal(tensor, torch.zeros(3))


def test_modes_are_as_before() -> None:
    module = Stateful().eval()
    module.inner[0].train()
    modes = [inner.training for inner in module.modules()]
    run_twice(module, torch.randn(4, 3, 5))
    assert [inner.training for inner in module.modules()] == modes
    assert set(modes) == {True, False}


def test_the_input_and_the_state_of_random_numbers_are_as_before() -> None:
    x = torch.randn(4, 3, 5)
    copied, random = x.clone(), torch.get_rng_state()
    run_twice(Stateful().eval(), x)
    assert torch.equal(x, copied)
    assert torch.equal(random, torch.get_rng_state())


def test_a_dict_that_refuses_to_be_written_is_left_alone() -> None:
    """Libraries keep settings in such dicts."""

    class Frozen(dict[str, Any]):
        def clear(self) -> None:
            raise TypeError("frozen")

    module = ForwardModule(lambda x, y: x)
    module.settings = Frozen(rate=16000)
    run, _ = oracle(module, torch.ones(3))
    run({"x": np.ones(3, np.float32)})
    assert module.settings == {"rate": 16000}


def test_what_is_not_written_is_not_touched() -> None:
    """Autograd counts writes: a backward after a comparison still works."""
    module = nn.Conv1d(3, 4, 2)
    x = torch.randn(1, 3, 5)
    loss, version = module(x).pow(2).sum(), module.weight._version
    run, _ = oracle(module, x)
    run({"input": x.numpy()})
    loss.backward()
    assert module.weight._version == version


def test_state_comes_back_after_an_error() -> None:
    module = Stateful()
    call = read_call(torch, module, "M", torch.randn(4, 3, 5), {})
    with (
        pytest.raises(InputError, match=r"RuntimeError: running_mean .* 2 elements not 3"),
        preserve_state(torch, module, call) as state,
    ):
        ModuleOracle(torch, module, call, state.restore_eval, ["y"])({"x": np.zeros((4, 2, 5), np.float32)})
    assert module.count == 0
    assert torch.equal(module.written, torch.zeros(3))
    assert module.training


def test_runs_compute_no_gradients() -> None:
    enabled: list[bool] = []

    def forward(x: Any, y: Any) -> Any:
        enabled.append(torch.is_grad_enabled())
        return x * 2

    run, _ = oracle(ForwardModule(forward), torch.randn(1, 5, requires_grad=True))
    run({"x": np.ones((1, 5), np.float32)})
    assert enabled == [False]
    assert torch.is_grad_enabled()


def test_a_tensor_of_inference_mode_is_read() -> None:
    """Such a tensor counts no writes, and cannot be written."""
    module = ForwardModule(lambda x, y: x + module.table)
    with torch.inference_mode():
        module.table = torch.ones(3)
    run, _ = oracle(module, torch.randn(3))
    np.testing.assert_array_equal(run({"x": np.zeros(3, np.float32)})["y"], np.ones(3))


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        pytest.param(lambda x: x, {"a": (2, 5)}, id="tensor"),
        pytest.param(
            lambda x: (x, None, {"deep": [x[:1]], "flag": True}), {"a": (2, 5), "b": (1, 5)}, id="nested"
        ),
        pytest.param(lambda x: {"late": x, "early": x[:, :1]}, {"a": (2, 5), "b": (2, 1)}, id="dict"),
        pytest.param(lambda x: x.to(torch.complex64), {"a": (2, 5, 2)}, id="complex"),
        pytest.param(lambda x: x.sum() > 0, {"a": ()}, id="truth value"),
        pytest.param(
            lambda x: list(x[0]),
            {"a": (), "b": (), "output 2": (), "output 3": (), "output 4": ()},
            id="list",
        ),
        pytest.param(lambda x: None, {}, id="nothing"),
    ],
)
def test_outputs_have_the_order_and_names_of_the_model(
    returned: Any, expected: dict[str, tuple[int, ...]]
) -> None:
    """Tensors in the order in which they stand, by the model's names; complex ones as pairs."""
    run, _ = oracle(ForwardModule(lambda x, y: returned(x)), torch.randn(2, 5), ["a", "b"])
    outputs = run({"x": np.ones((2, 5), np.float32)})
    assert {name: value.shape for name, value in outputs.items()} == expected


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.float32, torch.float64, torch.complex64, torch.int64, torch.uint8, torch.bool],
)
def test_inputs_have_the_type_of_the_example(dtype: Any) -> None:
    """The inputs are converted back to the example's type."""
    inputs: list[Any] = []

    def forward(x: Any, y: Any) -> Any:
        inputs.append(x)
        return x

    example = torch.randn(2, 5).abs().to(dtype)
    run, samples = oracle(ForwardModule(forward), example, dynamic={"x": {1: "T"}})
    value = samples["x"].value
    assert value.shape == ((2, 5, 2) if dtype.is_complex else (2, 5))
    assert samples["x"].axes == {1: "T"}
    np.testing.assert_array_equal(run({"x": value})["y"], value)
    assert inputs[0].dtype == dtype
    assert torch.equal(inputs[0], example)


def test_nested_inputs_have_the_names_of_the_exporter() -> None:
    """Inputs have the exporter's names; numbers stay, and inputs that the model does not read are the example's."""
    example = (torch.zeros(1, 5), {"state": [torch.ones(2), (torch.full((2,), 2.0), 3)], "gain": 0.5})
    module = ForwardModule(
        lambda x, y: x.sum() + y["state"][0] + y["state"][1][0] * y["state"][1][1] * y["gain"]
    )
    run, samples = oracle(module, example)
    assert list(samples) == ["x", "y_state_0", "y_state_1_0"]
    output = run({"x": np.ones((1, 7), np.float32), "y_state_1_0": np.full(2, 4.0, np.float32)})["y"]
    np.testing.assert_array_equal(output, np.full(2, 7 + 1 + 4 * 3 * 0.5))


def test_inputs_that_are_not_of_the_example_are_refused() -> None:
    call = read_call(torch, ForwardModule(None), "ForwardModule", torch.zeros(3), {})
    with pytest.raises(
        LoadError, match=r"Net: the exported model has inputs that are not of the example \(z\)"
    ):
        samples(torch, call, ["x", "z"], "Net")
