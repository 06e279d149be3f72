"""Loops over frames that write to tensors and read what they wrote: recursive filters, as authors write them."""

from collections.abc import Callable
from typing import Any

import pytest

import pulse
from tests.pulse.torch.exporter import F, nn, torch


class Filter(nn.Module):
    """A function of x [1, T]."""

    def __init__(self, forward: Callable[[Any], Any]) -> None:
        super().__init__()
        self.written = forward

    def forward(self, x: Any) -> Any:
        return self.written(x)


def delayed_writes(x: Any) -> Any:
    """The buffer begins with as many zeros as the filter looks back."""
    y = torch.zeros(1, x.shape[1] + 3)
    for t in range(x.shape[1]):
        y[:, t + 3] = x[:, t] - 0.3 * y[:, t + 2] + 0.1 * y[:, t]
    return y[:, 3:]


def keep_the_first_zeros(x: Any) -> Any:
    y = torch.zeros(1, x.shape[1] + 2)
    for t, frame in enumerate(x.t()):
        y[:, t + 2] = frame - 0.3 * y[:, t + 1] + 0.1 * y[:, t]
    return y


def direct_form(x: Any) -> Any:
    """Padded input and longer buffer, both read by windows."""
    padded, y = F.pad(x, (2, 0)), torch.zeros(1, x.shape[1] + 2)
    for t in range(x.shape[1]):
        forward = padded[:, t : t + 3] @ torch.tensor([0.2, 0.3, 0.2])
        y[:, t + 2] = forward + y[:, t : t + 2] @ torch.tensor([-0.2, 0.6])
    return y[:, 2:]


def window_over_the_frame(x: Any) -> Any:
    """The window ends with the frame that is about to be written, still zero (torchaudio's lfilter)."""
    taps, y = torch.tensor([0.2, -0.6, 1.0]), torch.zeros(x.shape[0], x.shape[1] + 2)
    for t, frame in enumerate(x.t()):
        y[:, t + 2] = frame - torch.mv(y[:, t : t + 3], taps)
    return y[:, 2:]


def shorter_than_its_input(x: Any) -> Any:
    frames: list[Any] = []
    for t in range(x.shape[1] - 3):
        frames.append((x[:, t : t + 4] * torch.tensor([0.1, 0.2, 0.3, 0.4])).sum(1))
    return torch.stack(frames, 1)


def in_place(x: Any) -> Any:
    """De-emphasis: each frame is read before it is replaced."""
    y = x.clone()
    for t in range(1, x.shape[1]):
        y[:, t] = y[:, t] + 0.5 * y[:, t - 1]
    return y


def in_place_with_a_state(x: Any) -> Any:
    """Each step replaces its frame by the frame without its running mean."""
    y, mean = x.clone(), torch.zeros(1)
    for t in range(x.shape[1]):
        mean = torch.lerp(mean, x[:, t], 0.1)
        y[:, t] = y[:, t] - mean
    return y


def in_place_after_padding(x: Any) -> Any:
    y = F.pad(x, (2, 0))
    for t in range(x.shape[1]):
        y[:, t + 2] = y[:, t + 2] + 0.5 * y[:, t + 1] - 0.2 * y[:, t]
    return y[:, 2:]


def cascade(x: Any) -> Any:
    """Two buffers: the second one reads what the step has written to the first."""
    first, second = torch.zeros(1, x.shape[1] + 2), torch.zeros(1, x.shape[1] + 1)
    for t in range(x.shape[1]):
        first[:, t + 2] = x[:, t] + 0.6 * first[:, t + 1] - 0.2 * first[:, t]
        second[:, t + 1] = 0.5 * first[:, t + 2] + 0.4 * second[:, t]
    return second[:, 1:]


def two_loops(x: Any) -> Any:
    """The second loop replaces what the first one has written."""
    y = torch.zeros(1, x.shape[1] + 1)
    for t in range(x.shape[1]):
        y[:, t + 1] = x[:, t] + 0.6 * y[:, t]
    for t in range(x.shape[1]):
        y[:, t + 1] = 0.5 * y[:, t + 1] + 0.3 * y[:, t]
    return y[:, 1:]


FORMS = [
    delayed_writes,
    keep_the_first_zeros,
    direct_form,
    window_over_the_frame,
    shorter_than_its_input,
    in_place,
    in_place_with_a_state,
    in_place_after_padding,
    cascade,
    two_loops,
]


@pytest.mark.parametrize("forward", FORMS, ids=lambda forward: forward.__name__)
def test_a_filter_streams(forward: Callable[[Any], Any]) -> None:
    report = pulse.verify(Filter(forward), example=torch.randn(1, 50), dynamic={"x": {1: "T"}}, pulse=4)
    assert report.require().equal
    assert report.original is not None


def past_the_end(x: Any) -> Any:
    """Three frames of the buffer are never written."""
    y = torch.ones(1, x.shape[1] + 5)
    for t in range(x.shape[1]):
        y[:, t + 2] = x[:, t] + 0.5 * y[:, t + 1]
    return y


def from_the_next_frame(x: Any) -> Any:
    """The last frame is not written."""
    y = torch.zeros_like(x)
    for t in range(x.shape[1] - 1):
        y[:, t] = x[:, t + 1] - x[:, t]
    return y


def limit_the_buffer(x: Any) -> Any:
    y = torch.zeros(1, x.shape[1] + 1)
    for t in range(x.shape[1]):
        y[:, t + 1] = x[:, t] + 0.6 * y[:, t]
        y.clamp_(-5, 5)
    return y[:, 1:]


def limit_a_written_frame(x: Any) -> Any:
    y = torch.zeros(1, x.shape[1] + 1)
    for t in range(x.shape[1]):
        y[:, t + 1] = x[:, t] + 0.6 * y[:, t]
        y[:, t + 1].clamp_(-5, 5)
    return y[:, 1:]


def limit_an_input_frame(x: Any) -> Any:
    padded, frames = F.pad(x, (1, 0)), list[Any]()
    for t in range(x.shape[1]):
        frame = padded[:, t + 1]
        frame.clamp_(-5, 5)
        frames.append(frame + padded[:, t])
    return torch.stack(frames, 1)


def read_a_view(x: Any) -> Any:
    y = torch.zeros(1, x.shape[1] + 1)
    past = y[:, :-1]
    for t in range(x.shape[1]):
        y[:, t + 1] = x[:, t] + 0.6 * past[:, t]
    return y[:, 1:]


def read_all_of_it(x: Any) -> Any:
    y = torch.zeros(1, x.shape[1] + 1)
    for t in range(x.shape[1]):
        y[:, t + 1] = x[:, t] + 0.6 * y.amax(1)
    return y[:, 1:]


def use_a_replaced_frame(x: Any) -> Any:
    y = torch.zeros(1, x.shape[1] + 1)
    for t in range(x.shape[1]):
        old = y[:, t + 1]
        y[:, t + 1] = x[:, t] + 0.6 * y[:, t]
        y[:, t + 1] = y[:, t + 1] + old
    return y[:, 1:]


def add_overlapping_parts(x: Any) -> Any:
    y = torch.zeros(1, 2 * x.shape[1] + 2)
    for t in range(x.shape[1]):
        y[:, 2 * t : 2 * t + 4] += x[:, t : t + 1] * torch.hann_window(4)
    return y[:, :-2]


def fold_overlapping_parts(x: Any) -> Any:
    """The same, as the message says."""
    size = 2 * x.shape[1] + 2
    parts = [x[:, t : t + 1] * torch.hann_window(4) for t in range(x.shape[1])]
    return F.fold(torch.stack(parts, -1), (1, size), (1, 4), stride=(1, 2))[:, 0, 0, :-2]


def test_overlapping_parts_are_folded_after_the_loop() -> None:
    x = torch.randn(1, 50)
    torch.testing.assert_close(fold_overlapping_parts(x), add_overlapping_parts(x))
    with pytest.raises(pulse.LoadError, match=r"4 frames in each step, every 2, .*F\.fold\(torch\.stack"):
        pulse.from_torch(Filter(add_overlapping_parts), x, {"x": {1: "T"}})
    report = pulse.verify(Filter(fold_overlapping_parts), example=x, dynamic={"x": {1: "T"}}, pulse=4)
    assert report.require().equal


ALIASES = [
    (limit_the_buffer, "otherwise than by its frames"),
    (limit_a_written_frame, "changed in place"),
    (limit_an_input_frame, "changed in place"),
    (read_a_view, "otherwise than by its frames"),
    (read_all_of_it, "otherwise than by its frames"),
    (use_a_replaced_frame, "after its step has replaced it"),
]


@pytest.mark.parametrize(("forward", "reason"), ALIASES, ids=[forward.__name__ for forward, _ in ALIASES])
def test_another_use_of_a_buffer_is_refused(forward: Callable[[Any], Any], reason: str) -> None:
    """A frame is a view of its tensor in PyTorch, and a copy in the steps of an export."""
    with pytest.raises(pulse.LoadError, match=reason):
        pulse.from_torch(Filter(forward), torch.randn(1, 50), {"x": {1: "T"}})


def write_before_changing(x: Any) -> Any:
    """Each step writes a copy of its state."""
    y, state = torch.zeros(1, x.shape[1] + 1), torch.zeros(1)
    for t in range(x.shape[1]):
        state = x[:, t] + 0.6 * state
        y[:, t + 1] = state
        state = state.clone().clamp_(-0.1, 0.1)
    return y[:, 1:]


def test_a_written_frame_is_a_copy() -> None:
    report = pulse.verify(
        Filter(write_before_changing), example=torch.randn(1, 50), dynamic={"x": {1: "T"}}, pulse=4
    )
    assert report.require().equal


@pytest.mark.parametrize("forward", [past_the_end, from_the_next_frame], ids=lambda forward: forward.__name__)
def test_a_buffer_with_other_frames_is_refused(forward: Callable[[Any], Any]) -> None:
    with pytest.raises(pulse.LoadError, match=r"the loop over frames in .* cannot be exported"):
        pulse.from_torch(Filter(forward), torch.randn(1, 50), {"x": {1: "T"}})
