"""Loops whose steps are several frames apart, or take several frames at once."""

from collections.abc import Callable
from typing import Any

import pytest

import pulse
from pulse.errors import LoadError
from tests.pulse.torch.exporter import F, nn, torch


class StridedLoop(nn.Module):
    """A function of x [1, T, 3] and a layer of 3 channels."""

    def __init__(self, forward: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.written = forward
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.written(self.layer, x)


def every_second(layer: Any, x: Any) -> Any:
    h, outputs = torch.zeros(1, 3), list[Any]()
    for t in range(0, x.shape[1], 2):
        h = torch.tanh(layer(x[:, t]) + 0.5 * h)
        outputs.append(h)
    return torch.stack(outputs, 1)


def pairs(layer: Any, x: Any) -> Any:
    """Both frames of each pair; the module refuses odd lengths."""
    return torch.stack([layer(x[:, t]) - x[:, t + 1] for t in range(0, x.shape[1], 2)], 1)


def pairs_by_number(layer: Any, x: Any) -> Any:
    """The last frame of an odd length is left out."""
    return torch.stack([layer(x[:, 2 * i] - x[:, 2 * i + 1]) for i in range(x.shape[1] // 2)], 1)


def hops(layer: Any, x: Any) -> Any:
    """Windows that overlap, by their positions and by their number."""
    h, outputs, means = torch.zeros(1, 3), list[Any](), list[Any]()
    for n, t in enumerate(range(0, x.shape[1] - 8 + 1, 4)):
        h = torch.tanh(layer(x[:, t : t + 8].mean(1)) + 0.5 * h)
        outputs.append(h * n - t)
    for i in range((x.shape[1] - 8) // 4 + 1):
        means.append(x[:, i * 4 : i * 4 + 8].mean(1))
    return torch.stack(outputs, 1), torch.stack(means, 1)


def wide_window(layer: Any, x: Any) -> Any:
    padded, outputs = F.pad(x, (0, 0, 31, 0)), list[Any]()
    for t in range(x.shape[1]):
        window = padded[:, t : t + 32]
        outputs.append((torch.softmax(window @ layer(x[:, t])[..., None], 1) * window).sum(1))
    return torch.stack(outputs, 1)


def write_every_second(layer: Any, x: Any) -> Any:
    """The other frames stay as they are."""
    y, h = x.clone(), torch.zeros(1, 3)
    for t in range(0, x.shape[1], 2):
        h = torch.tanh(layer(x[:, t]) + 0.5 * h)
        y[:, t] = h
    return y


ANY_LENGTH = [every_second, pairs_by_number, hops, wide_window, write_every_second, pairs]


@pytest.mark.parametrize("forward", ANY_LENGTH, ids=lambda forward: forward.__name__)
def test_steps_that_are_several_frames_apart_stream(forward: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(0)
    example = torch.randn(1, 24, 3)
    pulse.verify(StridedLoop(forward), example=example, dynamic={"x": {1: "T"}}, pulse=8).require()


def parts(layer: Any, x: Any) -> Any:
    h, outputs = torch.zeros(1, 1, 3), list[Any]()
    for part in x.split(4, dim=1):
        h = torch.tanh(part.mean(1, keepdim=True) + 0.5 * h)
        outputs.append(layer(part) + h)
    return torch.cat(outputs, 1)


def parts_by_function(layer: Any, x: Any) -> Any:
    """The parts are given by their size, as a named argument, and by their number."""
    by_size = [layer(part) for part in torch.split(x, split_size_or_sections=4, dim=1)]
    by_count = [part.flip(1) for part in torch.chunk(x, x.shape[1] // 4, dim=1)]
    return torch.cat(by_size, 1), torch.cat(by_count, 1)


def written_parts(layer: Any, x: Any) -> Any:
    y, h = torch.zeros_like(x), torch.zeros(1, 1, 3)
    for t in range(0, x.shape[1], 4):
        h = torch.tanh(x[:, t : t + 4].mean(1, keepdim=True) + 0.5 * h)
        y[:, t : t + 4] = layer(x[:, t : t + 4]) * h
    return y


def written_pairs(layer: Any, x: Any) -> Any:
    """Two frames of one tensor in each step, and one of a tensor at half the rate."""
    y, half = torch.zeros_like(x), x.new_zeros(1, x.shape[1] // 4, 3)
    for t in range(0, x.shape[1], 4):
        y[:, t] = layer(x[:, t])
        y[:, t + 1] = x[:, t + 1] - x[:, t]
        half[:, t // 4] = x[:, t + 2]
    return y, half


WHOLE_PARTS = [parts, parts_by_function, written_parts, written_pairs]


@pytest.mark.parametrize("forward", WHOLE_PARTS, ids=lambda forward: forward.__name__)
def test_parts_of_several_frames_stream(forward: Callable[[Any, Any], Any]) -> None:
    """The length is declared as a multiple of the parts."""
    torch.manual_seed(0)
    example = torch.randn(1, 24, 3)
    pulse.verify(StridedLoop(forward), example=example, dynamic={"x": {1: "4*T"}}, pulse=8).require()


@pytest.mark.parametrize("forward", [parts, written_parts], ids=lambda forward: forward.__name__)
def test_a_last_part_that_may_be_shorter_is_refused(forward: Callable[[Any, Any], Any]) -> None:
    place = r"the loop over frames in test_loop_strides\.py line \d+ cannot be exported for every length: "
    reason = r"it takes 4 frames in each step, .*as in dynamic={'x': {1: '4\*T'}}"
    with pytest.raises(LoadError, match=place + reason):
        pulse.from_torch(StridedLoop(forward), torch.randn(1, 24, 3), {"x": {1: "T"}})


def overlapping_writes(layer: Any, x: Any) -> Any:
    y = torch.zeros_like(x)
    for t in range(0, x.shape[1] - 4, 2):
        y[:, t : t + 4] += layer(x[:, t : t + 4])
    return y


def test_parts_that_are_written_over_each_other_are_refused() -> None:
    with pytest.raises(
        LoadError, match=r"the loop over frames in test_loop_strides\.py line \d+ cannot be exported"
    ):
        pulse.from_torch(StridedLoop(overlapping_writes), torch.randn(1, 24, 3), {"x": {1: "T"}})
