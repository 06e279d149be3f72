"""How much memory a large module takes on its way to a program, and what becomes of weights that are mapped."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.support.mapping import map_arrays, release_pages

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def test_mapped_arrays_are_the_same() -> None:
    """The arrays hold after their memory has gone; they are not written to."""
    arrays = [np.arange(5000.0).reshape(50, 100).T, np.ones(3, np.float32)]
    mapped = map_arrays(arrays)
    for array, copy in zip(arrays, mapped):
        for _ in range(2):
            np.testing.assert_array_equal(copy, array)
            release_pages(copy)
        assert not copy.flags.writeable
        assert copy.dtype == array.dtype


def test_a_model_of_mapped_weights_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model keeps its weights if the module changes, also weights in another memory layout."""
    monkeypatch.setattr("pulse.torch.preservation.MIN_MAPPED_BYTES", 1)
    monkeypatch.setattr("pulse.torch.preservation.MIN_FILE_TENSOR_BYTES", 1)
    monkeypatch.setattr("pulse.torch.replacements.weights.MIN_PLACEHOLDER_BYTES", 1)
    module: Any = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    x = torch.randn(1, 12, 6)
    expected = module(x).detach().numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pulse.PulseWarning)
        model = pulse.from_torch(module, x, dynamic={0: {1: "T"}})
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    (output,) = model.analyse().run(x.numpy()).values()
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_a_module_that_writes_to_its_weights_gets_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights come from the file in which they are kept."""
    monkeypatch.setattr("pulse.torch.preservation.MIN_MAPPED_BYTES", 1)
    monkeypatch.setattr("pulse.torch.preservation.MIN_FILE_TENSOR_BYTES", 1)

    class Writes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(2, 3))

        def forward(self, x: Any) -> Any:
            if not torch.compiler.is_exporting():
                self.weight.data.copy_(self.weight * 1)
                self.weight.zero_()
            return x * 2

    module = Writes()
    before = module.weight.detach().clone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pulse.PulseWarning)
        pulse.from_torch(module, torch.randn(1, 3, 20), dynamic={0: {2: "T"}})
    assert torch.equal(module.weight, before)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux, which tells the peak")
def test_a_large_module_takes_at_most_twice_its_weights() -> None:
    """Beside the module itself: up to twice its weights, in the end 1.2 times."""
    script = Path(__file__).with_name("memory_of_a_module.py")
    root = Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, check=True, cwd=root
    )
    figures = json.loads(run.stdout.splitlines()[-1])
    assert figures["weights"] > 400e6
    assert figures["rows"] > 32
    assert figures["peak"] < 2 * figures["weights"], figures
    assert figures["rest"] < 1.2 * figures["weights"], figures
