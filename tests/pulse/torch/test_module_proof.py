"""A module is proved as it is, with its author's own streaming beside it."""

from typing import Any

import numpy as np
import pytest

import pulse
from tests.pulse.torch.exporter import nn, torch


class Causal(nn.Module):
    """A convolution and a recurrent layer, and their author's streaming."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 5)
        self.gru = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.gru(self.conv(nn.functional.pad(x, (4, 0))).transpose(1, 2))[0]


class ModuleStream:
    """The streaming form of ``Causal``, in its initial state."""

    def __init__(self, module: Causal) -> None:
        self.module, self.past, self.state = module, torch.zeros(1, 2, 4), None

    def __call__(self, x: Any) -> Any:
        x = torch.cat([self.past, x], 2)
        self.past = x[..., -4:]
        y, self.state = self.module.gru(self.module.conv(x).transpose(1, 2), self.state)
        return y


def test_a_twin_of_a_module_is_compared() -> None:
    torch.manual_seed(0)
    module = Causal()
    options: dict[str, Any] = {"pulse": 4, "lengths": [9], "example": torch.randn(1, 2, 24)}
    twin = ModuleStream(module)
    with pytest.warns(pulse.PulseWarning, match="time"):
        assert pulse.verify(module, twin=twin, **options).outcome == "equal"
    for other, words in (
        (twin, r"the twin differs from the module at \[0, 0, \d\]: .* a twin begins with a new stream"),
        (lambda x: x[:, :1, :3], r"the twin's frames have shape \[1, 8, 3\], .* whole input \[1, 32, 4\]"),
    ):
        with pytest.warns(pulse.PulseWarning), pytest.raises(pulse.DivergenceError, match=words):
            pulse.verify(module, twin=other, **options)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(pulse.InputError, match=r"proof of Causal, a module, .*verify\(module, example=x\)"):
        pulse.verify(Causal())
    with pytest.raises(
        pulse.InputError, match="example, twin, dynamic, states and method are for a PyTorch module"
    ):
        pulse.verify(b"", example=np.zeros(3))
