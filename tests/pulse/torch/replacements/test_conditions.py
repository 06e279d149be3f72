# pyright: basic
"""Truth values of tensors that are known before a module runs, and layers that raise while it is exported."""

from typing import Any

import pytest

import pulse
from pulse.errors import LoadError
from tests.pulse.torch.asserting_modules import Codebook, Truth, ask
from tests.pulse.torch.exporter import torch


def test_flags_in_buffers_and_assertions_are_known() -> None:
    model = pulse.from_torch(Codebook(), torch.randn(1, 20, 3), {"x": {1: "T"}})
    pulse.verify(model.analyse(), pulse=4).require()


class Flag(torch.nn.Module):
    """A flag that the call itself writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("is_new", torch.tensor(True))

    def forward(self, x: Any) -> Any:
        self.is_new.logical_and_((x > 0).all())
        return x + 1 if self.is_new else x


def test_a_buffer_that_the_call_writes_to_is_not_known() -> None:
    with pytest.raises(LoadError, match="depends on the values of a tensor"):
        pulse.from_torch(Flag(), torch.rand(1, 20, 3), {"x": {1: "T"}})


class Choosy(torch.nn.Module):
    """Layers that are tried with an argument that the first one does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 4), torch.nn.GRU(4, 4, batch_first=True)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            try:
                x = layer(x, hx=None)[0]
            except TypeError:
                x = layer(x)
        return x


def test_a_layer_may_raise_if_its_caller_continues() -> None:
    model = pulse.from_torch(Choosy(), torch.randn(1, 20, 3), {"x": {1: "T"}})
    pulse.verify(model.analyse(), pulse=4).require()


def test_only_assertions_are_known() -> None:
    truth = Truth()
    assert ask(truth) == [0, 1, 2]
    assert truth.answers == [True, False, True, True, None, None, None, None]


class Aligned(torch.nn.Module):
    """Padded only where the length needs it, as separators align their frames."""

    def forward(self, x: Any) -> Any:
        frames = x.shape[-1]
        if frames % 4 == 0:
            return x
        return torch.nn.functional.pad(x, (0, 4 - frames % 4))


def test_a_condition_on_the_length_is_named_where_lengths_differ() -> None:
    """The example is one of the lengths that need no padding."""
    line = r"decided these conditions for all lengths: test_conditions.py line \d+ \(if frames % 4 == 0:\); compute"
    with pytest.raises(LoadError, match=line):
        pulse.from_torch(Aligned(), torch.randn(1, 2, 40), {"x": {2: "T"}})


class Cropped(torch.nn.Module):
    """Padded only where the length needs it, there and back by a stride, and as long as before."""

    def forward(self, x: Any) -> Any:
        frames = x.shape[-1]
        if frames % 4:
            x = torch.nn.functional.pad(x, (0, 4 - frames % 4))
        y = torch.nn.functional.conv1d(x, torch.ones(2, 2, 4), stride=4)
        y = torch.nn.functional.conv_transpose1d(y, torch.ones(2, 2, 8), stride=4)
        return y[..., 2 : 2 + frames].reshape(1, 2, -1, frames)


def test_a_condition_on_an_unknown_length_is_named() -> None:
    line = (
        r"decided these conditions for all lengths: test_conditions.py line \d+ \(if frames % 4:\); compute"
    )
    with pytest.raises(LoadError, match=line):
        pulse.from_torch(Cropped(), torch.randn(1, 2, 40), {"x": {2: "T"}})
