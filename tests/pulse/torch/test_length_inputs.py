"""Inputs that are the length of the others: a model computes them, and a mask of padding disappears."""

from collections.abc import Callable
from typing import Any

import pytest

import pulse
from pulse.errors import PulseWarning
from pulse.ops.time_position import Range
from tests.pulse.torch.exporter import F, nn, torch


class PaddedByLength(nn.Module):
    """A causal encoder with a stride, which hides the frames after each end."""

    def __init__(self, halve: Callable[[Any], Any] = lambda n: (n + 1) // 2) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(4, 6, 3), nn.Conv1d(6, 5, 3, 2)
        self.halve = halve

    def forward(self, x: Any, lengths: Any) -> Any:
        x = self._hide(self.first(F.pad(x.transpose(1, 2), (2, 0))), lengths)
        lengths = self.halve(lengths)
        x = self._hide(self.second(F.pad(x, (2, 0))), lengths)
        return x.transpose(1, 2), lengths

    def _hide(self, x: Any, lengths: Any) -> Any:
        longest = int(torch.max(lengths).item())
        hidden = torch.arange(longest).expand(len(lengths), longest) >= lengths.unsqueeze(1)
        return x.masked_fill(hidden.unsqueeze(1), 0.0)


HALVES: dict[str, Callable[[Any], Any]] = {
    "integers": lambda n: (n + 1) // 2,
    "rounded": lambda n: torch.div(n + 1, 2, rounding_mode="floor"),
    "floats": lambda n: torch.ceil(n.float() / 2).long(),
}


@pytest.mark.parametrize("halve", HALVES.values(), ids=HALVES)
def test_a_mask_of_padding_disappears(halve: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    with (
        pytest.warns(PulseWarning, match=r"time \(T\) is axis 1 of x"),
        pytest.warns(PulseWarning, match=r"lengths is the length of x \(axis 1\) in the example"),
    ):
        model = pulse.from_torch(PaddedByLength(halve), (torch.randn(1, 20, 4), torch.tensor([20])))
    typed = model.analyse().declutter()
    assert list(typed.inputs) == ["x"]
    assert len(typed.outputs) == 1
    assert not any(isinstance(node.op, Range) for node in typed.graph.nodes)
    pulse.verify(typed, pulse=2).require()
