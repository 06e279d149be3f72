"""Inputs of a model have the names of the module's parameters."""

from typing import Any

import numpy as np
import pytest

import pulse
from tests.pulse.torch.exporter import nn, torch


class CapitalLetters(nn.Module):
    """Parameters as some authors name them; two differ in case only."""

    def forward(self, mixWav: Any, x: Any, X: Any = None) -> Any:
        return mixWav + 2 * x if X is None else mixWav + 2 * x - X


@pytest.mark.parametrize("count", [2, 3])
def test_parameters_keep_their_names(count: int) -> None:
    names = ["mixWav", "x", "X"][:count]
    example = {name: torch.randn(1, 20) for name in names}
    model = pulse.from_torch(CapitalLetters(), example, {name: {1: "T"} for name in names})
    assert list(model.inputs) == names
    assert pulse.verify(model, pulse=4).require().equal


class NumbersBetween(nn.Module):
    """Arguments that are no tensors stand before and between those that are."""

    def forward(self, scale: float, x: Any, mode: str, z: Any) -> Any:
        return scale * x - z if mode == "difference" else x


@pytest.mark.parametrize("dynamic", [{"x": {1: "T"}, "z": {1: "T"}}, {}], ids=["dynamic", "constant"])
def test_inputs_have_the_names_of_tensors(dynamic: dict[str, dict[int, str]]) -> None:
    example = (3.0, torch.randn(1, 20), "difference", torch.randn(1, 20))
    model = pulse.from_torch(NumbersBetween(), example, dynamic)
    assert list(model.inputs) == ["x", "z"]
    feeds = {"x": np.full((1, 20), 2, np.float32), "z": np.ones((1, 20), np.float32)}
    assert next(iter(model.analyse().run(feeds).values()))[0, 0] == 5


class NestedInputs(nn.Module):
    """Arguments and results whose keys read the same when they are joined."""

    def forward(self, x: Any, x_a: Any, more: Any) -> Any:
        return {"y": {"a": x["a"] - x_a}, "y_a": x_a + more["b_c"] - 2 * more["b"]["c"]}


def test_names_are_distinct() -> None:
    """A parameter's own name stays with it."""
    chunk = torch.randn(1, 6)
    example = {"x": {"a": 3 * chunk}, "x_a": chunk, "more": {"b_c": 4 * chunk, "b": {"c": chunk}}}
    model = pulse.from_torch(NestedInputs(), example, {})
    assert list(model.inputs) == ["x_a_2", "x_a", "more_b_c", "more_b_c_2"]
    feeds = {name: np.full((1, 6), n + 1, np.float32) for n, name in enumerate(model.inputs)}
    results = model.analyse().run(feeds)
    assert {name: value[0, 0] for name, value in results.items()} == {"y_a_2": -1, "y_a": -3}
