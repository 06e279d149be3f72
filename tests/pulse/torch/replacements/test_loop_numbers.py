"""Loops over frames that compute with the number of their step."""

import math
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


def by_a_quotient(x: Any) -> Any:
    return torch.stack([x[:, t] * (1 / (t + 1)) - 1 / (0.5 + t) for t in range(x.shape[1])], 1)


def by_a_multiple(x: Any) -> Any:
    return torch.stack([x[:, t] + 2 * t - 0.5 * (3 - t) + t * t - abs(t - 3.5) for t in range(x.shape[1])], 1)


def by_remainders(x: Any) -> Any:
    return torch.stack([x[:, t] * (t % 3) + t // 5 + t**2 for t in range(x.shape[1])], 1)


def limited_count(x: Any) -> Any:
    """Running means of the first frames, then smoothed ones: the larger and the smaller of a number and a bound."""
    mean, other, outputs = torch.zeros(1), torch.zeros(1), list[Any]()
    for t, frame in enumerate(x.unbind(1)):
        mean = mean + max(0.05, 1 / (t + 1)) * (frame - mean)
        other = other + (frame - other) / min(t + 1, 12)
        outputs.append(mean * other)
    return torch.stack(outputs, 1)


def compared_with_frames(x: Any) -> Any:
    return torch.stack([(x[:, t] > t).float() + (t >= 20 * x[:, t]).float() for t in range(x.shape[1])], 1)


def by_a_table(x: Any) -> Any:
    """Functions of positions before the loop."""
    decay, root = 0.9 ** torch.arange(x.shape[1]), torch.arange(1, x.shape[1] + 1).sqrt()
    return torch.stack([x[:, t] * decay[t] / root[t] for t in range(x.shape[1])], 1)


NUMBERED = [
    by_a_table,
    running_mean,
    mean_from_the_first,
    both_sides,
    corrected_bias,
    written_level,
    from_the_second,
    by_a_quotient,
    by_a_multiple,
    by_remainders,
    limited_count,
    compared_with_frames,
]


@pytest.mark.parametrize("forward", NUMBERED, ids=lambda forward: forward.__name__)
def test_a_step_computes_with_its_number(forward: Callable[[Any], Any]) -> None:
    report = pulse.verify(
        Numbered(forward), example=torch.randn(1, 40), dynamic={"x": {1: "T"}}, pulse=3, lengths=[1, 2, 9, 60]
    )
    assert report.require().equal


def by_a_power(x: Any) -> Any:
    """The power of a long stream would not be exact in f32."""
    return torch.stack([x[:, t] * (1 - 0.999 ** (t + 1)) for t in range(x.shape[1])], 1)


def by_a_root(x: Any) -> Any:
    return torch.stack([x[:, t] / math.sqrt(t + 1) for t in range(x.shape[1])], 1)


def by_a_float(x: Any) -> Any:
    return torch.stack([x[:, t] / (float(t) + 1) for t in range(x.shape[1])], 1)


@pytest.mark.parametrize("forward", [by_a_power, by_a_root, by_a_float], ids=lambda forward: forward.__name__)
def test_other_numbers_of_a_step_are_refused(forward: Callable[[Any], Any]) -> None:
    reason = r"number of the step that is not arithmetic .*; leave out float\(t\).* before the loop, and decay\[t\]"
    with pytest.raises(pulse.LoadError, match=reason):
        pulse.from_torch(Numbered(forward), torch.randn(1, 40), {"x": {1: "T"}})


def learns_at_first(x: Any) -> Any:
    """A noise estimate of the first frames: neither the exported steps nor the compared lengths reach its end."""
    noise, outputs = torch.zeros(1), list[Any]()
    for t in range(x.shape[1]):
        if t < 1000:
            noise = 0.9 * noise + 0.1 * x[:, t].abs()
        outputs.append(x[:, t] / (noise + 0.1))
    return torch.stack(outputs, 1)


def learns_for_seconds(x: Any) -> Any:
    noise, outputs = torch.zeros(1), list[Any]()
    for t in range(x.shape[1]):
        if 0.01 * t < 2.0:
            noise = 0.9 * noise + 0.1 * x[:, t].abs()
        outputs.append(x[:, t] / (noise + 0.1))
    return torch.stack(outputs, 1)


def updates_at_times(x: Any) -> Any:
    gain, outputs = torch.ones(1), list[Any]()
    for t in range(x.shape[1]):
        if t % 500 == 0:
            gain = 1 / (1 + x[:, t].abs())
        outputs.append(x[:, t] * gain)
    return torch.stack(outputs, 1)


def chosen_by_time(x: Any) -> Any:
    weights = [0.5, 0.7, 0.9]
    return torch.stack([x[:, t] * weights[t // 1000] for t in range(x.shape[1])], 1)


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (learns_at_first, "a condition on the number of the step is otherwise from step 1000 on"),
        (learns_for_seconds, "a condition on the number of the step is otherwise from step 200 on"),
        (updates_at_times, "a condition on the number of the step is otherwise from step 500 on"),
        (chosen_by_time, "selects by its value, and changes from step 1000 on"),
    ],
    ids=["condition", "seconds", "remainder", "index"],
)
def test_what_changes_after_the_exported_steps_is_refused(forward: Callable[[Any], Any], reason: str) -> None:
    with pytest.raises(pulse.LoadError, match=reason):
        pulse.from_torch(Numbered(forward), torch.randn(1, 40), {"x": {1: "T"}})


def different_first_steps(x: Any) -> Any:
    """Conditions that hold from the second step on for every length."""
    h, outputs = torch.zeros(1), list[Any]()
    for t in range(x.shape[1]):
        h = x[:, t] if not t else 0.5 * h + x[:, t]
        outputs.append(h if t >= 0 and -t != 1 else -h)
    return torch.stack(outputs, 1)


def test_conditions_that_no_later_step_changes_stream() -> None:
    pulse.verify(
        Numbered(different_first_steps), example=torch.randn(1, 40), dynamic={"x": {1: "T"}}, pulse=3
    ).require()
