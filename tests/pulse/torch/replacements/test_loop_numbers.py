"""Loops over frames that compute with the number of their step."""

from collections.abc import Callable
from typing import Any

import pytest

import pulse
from tests.pulse.torch.exporter import nn, torch


class Numbered(nn.Module):
    """A function of x [1, T]."""

    def __init__(self, forward: Callable[[Any], Any]) -> None:
        super().__init__()
        self.written = forward

    def forward(self, x: Any) -> Any:
        return self.written(x)


def running_mean(x: Any) -> Any:
    mean, outputs = torch.zeros(1), list[Any]()
    for t in range(x.shape[1]):
        mean = mean + (x[:, t] - mean) / (t + 1)
        outputs.append(x[:, t] - mean)
    return torch.stack(outputs, 1)


def mean_from_the_first(x: Any) -> Any:
    """The first step differs from the others."""
    mean, outputs = torch.zeros(1), list[Any]()
    for t in range(x.shape[1]):
        mean = x[:, t] if t == 0 else (mean * t + x[:, t]) / (t + 1)
        outputs.append(mean)
    return torch.stack(outputs, 1)


def both_sides(x: Any) -> Any:
    """The number is either operand of each function; numbers of different steps are different inputs."""
    return torch.stack([(t - 2) * x[:, t] - t + (5 - (t + x[:, t])) for t in range(x.shape[1])], 1)


def corrected_bias(x: Any) -> Any:
    """The start of a smoothed value is corrected by a power, as in Adam."""
    decay, h, outputs = torch.tensor(0.9), torch.zeros(1), list[Any]()
    for t, frame in enumerate(x.unbind(1)):
        h = decay * h + (1 - decay) * frame
        outputs.append(h / (1 - decay ** (t + 1)))
    return torch.stack(outputs, 1)


def written_level(x: Any) -> Any:
    y, total = torch.zeros_like(x), torch.zeros(1)
    for t in range(x.shape[1]):
        total = total + x[:, t].abs()
        y[:, t] = x[:, t] / (total / (t + 1) + 0.01)
    return y


def from_the_second(x: Any) -> Any:
    """The loop begins later, and a frame is changed in place."""
    outputs = list[Any]()
    for t in range(1, x.shape[1]):
        frame = x[:, t] - x[:, t - 1]
        frame /= t
        outputs.append(frame)
    return torch.stack(outputs, 1)


NUMBERED = [running_mean, mean_from_the_first, both_sides, corrected_bias, written_level, from_the_second]


@pytest.mark.parametrize("forward", NUMBERED, ids=lambda forward: forward.__name__)
def test_a_step_computes_with_its_number(forward: Callable[[Any], Any]) -> None:
    report = pulse.verify(
        Numbered(forward), example=torch.randn(1, 40), dynamic={"x": {1: "T"}}, pulse=3, lengths=[1, 2, 9, 60]
    )
    assert report.require().equal


def by_a_quotient(x: Any) -> Any:
    return torch.stack([x[:, t] * (1 / (t + 1)) for t in range(x.shape[1])], 1)


def by_a_multiple(x: Any) -> Any:
    return torch.stack([x[:, t] + 2 * t for t in range(x.shape[1])], 1)


@pytest.mark.parametrize("forward", [by_a_quotient, by_a_multiple], ids=lambda forward: forward.__name__)
def test_other_numbers_of_a_step_are_refused(forward: Callable[[Any], Any]) -> None:
    with pytest.raises(pulse.LoadError, match="it computes with a number other than the step's"):
        pulse.from_torch(Numbered(forward), torch.randn(1, 40), {"x": {1: "T"}})
