"""Loops over frames that a module's author wrote in Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError, PulsifyError
from tests.pulse.torch.exporter import nn, torch


class Looping(nn.Module):
    """A forward that is given the module and its input."""

    def __init__(self, forward: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.written = forward
        self.inner = nn.Linear(3, 8)
        self.own = nn.Linear(4, 8, bias=False)

    def forward(self, x: Any) -> Any:
        return self.written(self, x)


def gated_loop(self: Any, x: Any) -> Any:
    """A light GRU: frames by their number, an output for each."""
    frames, h, outputs = self.inner(x), torch.zeros(x.shape[0], 4), list[Any]()
    for t in range(frames.shape[1]):
        candidate, gate = (frames[:, t] + self.own(h)).chunk(2, 1)
        gate = torch.sigmoid(gate)
        h = gate * h + (1 - gate) * torch.relu(candidate)
        outputs.append(h)
    return torch.stack(outputs, 1)


def unbound(self: Any, x: Any) -> Any:
    """Two loops, the second one over slices of a frame of what the first one joins; two states."""
    h, before, outputs = torch.zeros(1, 8), torch.zeros(1, 8), list[Any]()
    for frame in x.unbind(1):
        h, before = torch.tanh(self.inner(frame) + 0.5 * before), h
        outputs.append(h[:, None])
    first, outputs, total = torch.cat(outputs, 1), list[Any](), torch.zeros(1, 1, 8)
    for t in range(first.size(1)):
        total = 0.9 * total + first[:, t : t + 1]
        outputs.append(total)
    return torch.cat(outputs, dim=1)


def written_frames(self: Any, x: Any) -> Any:
    """Frames written to one tensor, from the state of two steps before."""
    y, h, before = torch.empty(1, 4, x.shape[1]), torch.zeros(1, 4), torch.ones(1, 4)
    for t in range(x.shape[1]):
        h, before = torch.tanh(self.inner(x[:, t, :])[:, :4] + 0.5 * h - 0.1 * before), h
        y[..., t] = h + before
    return y


def iterated_frames(self: Any, x: Any) -> Any:
    """The frames of the first axis, without a state."""
    return torch.stack([torch.relu(self.inner(frame)) for frame in x.transpose(0, 1)]).transpose(0, 1)


def split_frames(self: Any, x: Any) -> Any:
    """Frames that keep their axis, as an energy normalisation (PCEN) takes them."""
    smooth, outputs = torch.zeros(1, 3, 1), list[Any]()
    for frame in x.transpose(1, 2).split(1, dim=-1):
        smooth = 0.9 * smooth + 0.1 * frame.square()
        outputs.append(smooth)
    return torch.cat(outputs, -1)


def smoothed_from_the_first(self: Any, x: Any) -> Any:
    """An energy normalisation whose state begins with the first frame, before the loop."""
    state = x[:, 0]
    states = [state]
    for t in range(1, x.shape[1]):
        state = 0.9 * state + 0.1 * x[:, t]
        states.append(state)
    return x / (1e-3 + torch.stack(states, 1).abs())


def first_step_differs(self: Any, x: Any) -> Any:
    """The state does not exist in the first step."""
    state, states = None, list[Any]()
    for frame in x.split(1, dim=1):
        state = frame if state is None else 0.9 * state + 0.1 * frame
        states.append(state)
    return torch.cat(states, 1)


def biquad(self: Any, x: Any) -> Any:
    """A filter whose steps read earlier frames of the input and of what they write."""
    y = torch.zeros_like(x)
    for n in range(2, x.shape[1]):
        y[:, n] = (
            0.5 * x[:, n] + 0.3 * x[:, n - 1] + 0.1 * x[:, n - 2] - 0.4 * y[:, n - 1] - 0.2 * y[:, n - 2]
        )
    return y


def biquad_of_states(self: Any, x: Any) -> Any:
    """A filter of four states that begin as one tensor; two of them have it for two steps."""
    x1 = x2 = y1 = y2 = torch.zeros_like(x[:, 0])
    outputs = list[Any]()
    for n in range(x.shape[1]):
        y = 0.5 * x[:, n] + 0.3 * x1 + 0.1 * x2 - 0.4 * y1 - 0.2 * y2
        x2, x1, y2, y1 = x1, x[:, n], y1, y
        outputs.append(y)
    return torch.stack(outputs, 1)


def delayed_states(self: Any, x: Any) -> Any:
    """Two delays of four frames each, which begin with the same zeros and are scaled alike."""
    left, right, outputs = [torch.zeros_like(x[:, 0])] * 4, [torch.zeros_like(x[:, 0])] * 4, list[Any]()
    for frame in x.unbind(1):
        outputs.append(frame + 0.5 * left[0] - torch.tanh(0.5 * right[0]))
        left, right = [*left[1:], frame], [*right[1:], outputs[-1]]
    return torch.stack(outputs, 1)


def complex_states(self: Any, x: Any) -> Any:
    """A diagonal state space model (LRU): complex frames, states and products."""
    rate, mix = (
        torch.polar(torch.full((3,), 0.9), torch.arange(3.0)),
        torch.complex(self.own.weight, self.own.weight),
    )
    frames = x.to(torch.cfloat) * rate
    state, states = torch.zeros(1, 3, dtype=torch.cfloat), list[Any]()
    for t in range(x.shape[1]):
        state = rate * state + frames[:, t]
        states.append(state)
    return (torch.stack(states, 1) @ mix[:3]).real


def two_results_of_each_step(self: Any, x: Any) -> Any:
    """Subframes, of which each step appends two, and frames with new axes."""
    frames, h, outputs = self.inner(x), torch.zeros(1, 4, 1), list[Any]()
    for t in range(x.shape[1]):
        for half in frames[:, t, :, None].chunk(2, 1):
            h = torch.tanh(half + 0.5 * h)
            outputs.append(h[..., 0])
    return torch.cat(outputs, 1), torch.stack(outputs, 1)


def first_frame_by_number(self: Any, x: Any) -> Any:
    """An energy normalisation (PCEN) whose first step takes the frame with the index 0."""
    states = list[Any]()
    for t in range(x.shape[1]):
        states.append(x[:, 0] if t == 0 else 0.9 * states[-1] + 0.1 * x[:, t])
    return torch.stack(states, 1)


def states_before_and_after(self: Any, x: Any) -> Any:
    """Gains that move within each step, from the state before it to the one after it."""
    h, before, after = torch.ones(1, 3), list[Any](), list[Any]()
    for frame in x.unbind(1):
        before.append(h)
        h = 0.9 * h + frame
        after.append(h)
    return torch.stack(before, 1), torch.stack(after, 1)


def counted_frames(self: Any, x: Any) -> Any:
    """A running mean; the number of frames is a state that depends on no frame."""
    count, mean, means = x.new_zeros(1, 1), torch.zeros(1, 3), list[Any]()
    for frame in x.unbind(1):
        count = count + 1
        mean = mean + (frame - mean) / count
        means.append(mean)
    return torch.stack(means, 1)


def grown_frames(self: Any, x: Any) -> Any:
    """Each step joins its result to those before: to no frame, and without any tensor at first."""
    h, grown, states = torch.zeros(1, 8), x.new_zeros(1, 0, 8), None
    for t in range(x.shape[1]):
        h = torch.tanh(self.inner(x[:, t]) + 0.5 * h)
        grown = torch.cat([grown, h[:, None]], 1)
        states = h[None] if states is None else torch.cat((states, h[None]), dim=0)
    return grown, states


def grown_by_the_last(self: Any, x: Any) -> Any:
    """Each step reads the last frame that was joined, with its axis and without; one frame is there before."""
    wide = narrow = torch.ones(1, 1, 3)
    for t in range(x.shape[1]):
        wide = torch.cat([wide, 0.5 * wide[:, -1:] + x[:, t : t + 1]], 1)
        narrow = torch.cat([narrow, (0.5 * narrow[:, -1] + x[:, t])[:, None]], 1)
    return wide[:, 1:], narrow[:, 1:]


def smoothed_in_place(self: Any, x: Any) -> Any:
    """The first frame is written before the loop."""
    y = torch.zeros_like(x)
    y[:, 0] = x[:, 0]
    for t in range(1, x.shape[1]):
        y[:, t] = 0.9 * y[:, t - 1] + 0.1 * x[:, t]
    return y


def rolled_buffers(self: Any, x: Any) -> Any:
    """Buffers of past frames to whose end each step writes."""
    rolled, moved, outputs = torch.zeros(1, 4, 3), torch.zeros(1, 3, 5), list[Any]()
    for t in range(x.shape[1]):
        rolled = torch.roll(rolled, -1, 1)
        rolled[:, -1] = x[:, t]
        moved[:, :, :-1] = moved[:, :, 1:].clone()
        moved[:, :, -1] = x[:, t]
        outputs.append(self.inner(rolled.mean(1) + moved[..., 0]))
    return torch.stack(outputs, 1)


def sliding_buffers(self: Any, x: Any) -> Any:
    """Buffers that a step joins its frame to, of which it reads the last and the first frame."""
    buffer, state, outputs = torch.zeros(1, 2, 3), torch.zeros(1, 1, 3), list[Any]()
    for t in range(x.shape[1]):
        frame = x[:, t : t + 1]
        buffer = torch.cat([buffer[:, 1:], frame], 1)
        both = torch.cat([state, frame], 1)
        state = 0.5 * both[:, :1] + both[:, -1:]
        outputs.append(buffer[:, -1] - buffer[:, 0] + state[:, 0])
    return torch.stack(outputs, 1)


def grown_from_nothing(self: Any, x: Any) -> Any:
    """The tensor to which frames are joined begins without axes."""
    grown, h = torch.tensor([]), torch.zeros(1, 3)
    for t in range(x.shape[1]):
        h = 0.5 * h + x[:, t]
        grown = torch.cat([grown, h[:, None]], 1)
    return grown


def indexed_by_arrays(self: Any, x: Any) -> Any:
    """Channels by arrays of numpy, of the input and of a tensor that grows."""
    grown, order = torch.zeros(1, 0, 3), np.array([2, 0, 1])
    for t in range(x.shape[1]):
        grown = torch.cat([grown, x[:, t : t + 1][:, :, order]], 1)
    return grown[:, :, order] + x[:, :, order]


@pytest.mark.parametrize(
    "forward",
    [
        indexed_by_arrays,
        sliding_buffers,
        grown_from_nothing,
        grown_frames,
        grown_by_the_last,
        smoothed_in_place,
        rolled_buffers,
        first_frame_by_number,
        states_before_and_after,
        counted_frames,
        two_results_of_each_step,
        smoothed_from_the_first,
        first_step_differs,
        biquad,
        biquad_of_states,
        delayed_states,
        complex_states,
        gated_loop,
        unbound,
        written_frames,
        split_frames,
        pytest.param(iterated_frames, marks=pytest.mark.slow),
    ],
)
def test_a_loop_streams(forward: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(0)
    typed = pulse.from_torch(Looping(forward), torch.randn(1, 12, 3), {"x": {1: "T"}}).analyse().declutter()
    pulse.verify(typed, pulse=4).require()


def smoothed_spectra(self: Any, x: Any) -> Any:
    """Complex frames of the input, whose sizes the loop and its first state have."""
    state, states = torch.zeros_like(x[:, 0]), list[Any]()
    for t in range(x.shape[1]):
        state = 0.9 * state + 0.1j * x[:, t]
        states.append(state)
    return torch.stack(states, 1) + torch.ones(x.shape)


def test_a_loop_over_a_complex_input_streams() -> None:
    example = torch.randn(1, 12, 3, dtype=torch.cfloat)
    pulse.verify(pulse.from_torch(Looping(smoothed_spectra), example, {"x": {1: "T"}}), pulse=4).require()


def with_its_end(self: Any, x: Any) -> Any:
    h, outputs = torch.zeros(1, 8), list[Any]()
    for t in range(x.shape[1]):
        h = torch.tanh(self.inner(x[:, t]) + 0.5 * h)
        outputs.append(torch.relu(h))
    return torch.stack(outputs, 1), h


def test_what_the_last_step_leaves_is_an_output() -> None:
    typed = pulse.from_torch(Looping(with_its_end), torch.randn(1, 12, 3), {"x": {1: "T"}}).analyse()
    assert [str(fact) for fact in typed.outputs.values()] == ["1,T,8,f32", "1,8,f32"]


def used_at_once(self: Any, x: Any) -> Any:
    frames, h = with_its_end(self, x)
    return frames + h[:, None]


@pytest.mark.slow
def test_what_the_last_step_leaves_is_known_at_the_end() -> None:
    typed = pulse.from_torch(Looping(used_at_once), torch.randn(1, 12, 3), {"x": {1: "T"}}).analyse()
    with pytest.raises(PulsifyError, match="known only when the stream has ended"):
        typed.declutter().pulsify(pulse=4)


def numbered_steps(self: Any, x: Any) -> Any:
    return torch.stack([self.inner(x[:, t]) * 0.9**t for t in range(x.shape[1])], 1)


def backwards(self: Any, x: Any) -> Any:
    return torch.stack([self.inner(x[:, x.shape[1] - 1 - t]) for t in range(x.shape[1])], 1)


def growing_means(self: Any, x: Any) -> Any:
    return torch.stack([self.inner(x[:, : t + 1].mean(1)) for t in range(x.shape[1])], 1)


def changing_step(self: Any, x: Any) -> Any:
    return torch.stack(
        [self.inner(x[:, t]).exp() if t == 2 else self.inner(x[:, t]) for t in range(x.shape[1])], 1
    )


def summed_frames(self: Any, x: Any) -> Any:
    total = torch.zeros(1, 8)
    for t in range(x.shape[1]):
        total = total + self.inner(x[:, t])
    return total[:, None] + self.inner(x)


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (numbered_steps, "it computes with a number of the step that is not arithmetic with a tensor"),
        (backwards, "none of its steps takes its own frame"),
        pytest.param(growing_means, "none of its steps takes its own frame", marks=pytest.mark.slow),
        pytest.param(changing_step, "a step computes", marks=pytest.mark.slow),
        (summed_frames, "no frames of it are joined"),
    ],
)
def test_other_loops_are_refused_by_their_line(forward: Callable[[Any, Any], Any], reason: str) -> None:
    place = r"the loop over frames in test_loops\.py line \d+ cannot be exported for every length: "
    with pytest.raises(LoadError, match=f"{place}{reason}.*write it as layers"):
        pulse.from_torch(Looping(forward), torch.randn(1, 12, 3), {"x": {1: "T"}})


def reversed_list(self: Any, x: Any) -> Any:
    frames = list[Any]()
    for frame in x.unbind(1):
        frames.insert(0, 2 * frame)
    return torch.stack(frames, 1) + x


def test_a_failure_after_an_open_loop_names_its_line() -> None:
    with pytest.raises(
        LoadError, match=r"exporter fails: .*of the one in test_loops\.py line \d+ were not joined; a loop"
    ) as caught:
        pulse.from_torch(Looping(reversed_list), torch.randn(1, 12, 3), {"x": {1: "T"}})
    assert "\\n" not in str(caught.value)


def test_an_unsupported_complex_function_is_refused_by_its_line() -> None:
    for function, operator in ((torch.tanh, "tanh"), (torch.linalg.inv, "linalg_inv_ex")):
        module = Looping(
            lambda self, x, of=function: of(torch.complex(x[..., :1, None], x[..., :1, None])).real
        )
        with pytest.raises(
            LoadError, match=rf"does not support complex numbers in test_loops\.py line \d+ \({operator}\)"
        ):
            pulse.from_torch(module, torch.randn(1, 12, 3), {"x": {1: "T"}})
