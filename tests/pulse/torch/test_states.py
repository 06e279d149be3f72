"""Modules that their authors made streaming: caches that calls take and return, and buffers that they assign."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import DivergenceError, InputError, LoadError, PulseWarning
from pulse.facts import Array
from pulse.program.whole_stream import stream_whole
from tests.pulse.torch.exporter import nn, torch

pytestmark = pytest.mark.filterwarnings("ignore:.*(time \\(T\\)|one chunk in each call)")


class Assigned(nn.Module):
    """A causal convolution whose history is a buffer that is assigned."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3)
        self.register_buffer("past", torch.zeros(1, 2, 2))

    def forward(self, x: Any) -> Any:
        x = torch.cat([self.past, x], -1)
        self.past = x[..., -2:]
        return self.conv(x)


class WrittenStates(Assigned):
    """The same in place, with a position that counts frames."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frames", torch.zeros((), dtype=torch.long))

    def forward(self, x: Any) -> Any:
        joined = torch.cat([self.past, x], -1)
        self.past.copy_(joined[..., -2:])
        steps = self.frames + torch.arange(x.shape[-1])
        self.frames += x.shape[-1]
        return self.conv(joined) * torch.cos(steps)


class Two(nn.Module):
    """A module with two states."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Assigned(), WrittenStates()

    def forward(self, x: Any) -> Any:
        return self.second(torch.tanh(self.first(x)))


class Returned(nn.Module):
    """Caches in a dict and a tuple, as attention and convolution have them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(2, 2, 3), nn.Conv1d(2, 2, 3)

    def forward(self, x: Any, cache: Mapping[str, Any]) -> Any:
        x = torch.cat([cache["conv"][0], x], -1)
        y = torch.cat([cache["deep"], torch.tanh(self.first(x))], -1)
        return self.second(y), {"conv": (x[..., -2:],), "deep": y[..., -2:]}


class Attending(nn.Module):
    """Attention of a chunk to itself and to the eight frames before it, keys and values in a cache of constant size."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.Linear(8, 24)

    def forward(self, x: Any, att_cache: Any, offset: Any) -> Any:
        q, k, v = self.heads(x).chunk(3, -1)
        k, v = (torch.cat([old, new], 1) for old, new in zip(att_cache.chunk(2, -1), (k, v)))
        is_filled = torch.arange(k.shape[1]) >= 8 - offset
        weights = torch.softmax((q @ k.transpose(1, 2)).masked_fill(~is_filled, -torch.inf), -1)
        return weights @ v, torch.cat([k, v], -1)[:, -8:], offset + x.shape[1]


def in_chunks(module: Any, x: Any, size: int, axis: int, states: tuple[Any, ...] = ()) -> Array:
    """The module called chunk by chunk, with the states that it returned."""
    frames: list[Any] = []
    with torch.no_grad():
        for chunk in x.split(size, axis):
            result = module(chunk, *states)
            frames.append(result[0] if states else result)
            states = tuple(result[1:]) if states else ()
    return np.asarray(torch.cat(frames, axis))


@pytest.mark.parametrize("make", [Assigned, WrittenStates, Two])
def test_buffers_that_a_call_assigns_are_states(make: Any) -> None:
    """They begin with what the module holds, and afterwards it holds the same."""
    torch.manual_seed(0)
    module = make().eval()
    for name, buffer in module.named_buffers():
        if "past" in name:
            buffer.copy_(torch.randn(buffer.shape))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = pulse.from_torch(module, torch.randn(1, 2, 6), dynamic={})
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert len(model.variables) == len(before) - 2 * (2 if make is Two else 1)
    program = pulse.stream(pulse.load(model, chunking=pulse.Chunking(axes={"x": 2})))
    x = torch.randn(1, 2, 24)
    (output,) = stream_whole(program, {"x": x.numpy()}, 0.0).values()
    np.testing.assert_allclose(output, in_chunks(module, x, 6, 2), 1e-5, 1e-6)


def test_caches_that_calls_take_and_return_are_states() -> None:
    """Found by their name and form; they begin with the example's."""
    torch.manual_seed(0)
    module = Returned().eval()
    cache = {"conv": (torch.randn(1, 2, 2),), "deep": torch.randn(1, 2, 2)}
    with pytest.warns(PulseWarning, match="keeps cache_conv_0, cache_deep: a model of chunks"):
        model = pulse.from_torch(module, (torch.randn(1, 2, 6), cache), dynamic={})
    program = pulse.stream(pulse.load(model, chunking=pulse.Chunking(axes={"x": 2})))
    x = torch.randn(1, 2, 30)
    (output,) = stream_whole(program, {"x": x.numpy()}, 0.0).values()
    np.testing.assert_allclose(output, in_chunks(module, x, 6, 2, (cache,)), 1e-5, 1e-6)


def attention_module() -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(0)
    return Attending().eval(), (torch.randn(1, 4, 8), torch.zeros(1, 8, 16), torch.zeros(1, dtype=torch.long))


def test_states_are_named_and_chunks_have_any_length() -> None:
    """The frames of a chunk are those of the pulse; the proof calls the module chunk by chunk."""
    module, example = attention_module()
    states = {"att_cache": 1, "offset": 2}
    model = pulse.from_torch(module, example, states=states)
    x = torch.randn(1, 30, 8)
    for size in (5, 2):
        (output,) = stream_whole(pulse.stream(model, size), {"x": x.numpy()}, 0.0).values()
        np.testing.assert_allclose(output, in_chunks(module, x, size, 1, example[1:]), 1e-5, 1e-6)
    pulse.verify(module, example=example, states=states, pulse=5, lengths=[7, 40]).require()


def test_a_module_that_differs_from_its_calls_is_refused() -> None:
    """A list of Python is nothing that an export keeps; a twin that differs is one as well."""

    class Listed(Assigned):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[int] = []

        def forward(self, x: Any) -> Any:
            self.calls.append(1)
            return super().forward(x) * len(self.calls)

    with pytest.raises(LoadError, match=r"in call 2, after the same states: .*lists of Python"):
        pulse.from_torch(Listed().eval(), torch.randn(1, 2, 6), dynamic={})
    module, example = attention_module()
    with pytest.raises(DivergenceError, match="the twin differs"):
        pulse.verify(module, example=example, states={"att_cache": 1, "offset": 2}, pulse=5, twin=lambda x: x)


class Grown(nn.Module):
    def forward(self, x: Any, cache: Any) -> Any:
        joined = torch.cat([cache, x], -1)
        return x + joined.mean(), joined


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls


class Late(nn.Module):
    past: Any = None

    def forward(self, x: Any) -> Any:
        y = x if self.past is None else x + self.past
        self.past = x
        return y


@pytest.mark.parametrize(
    ("module", "more", "states", "message"),
    [
        pytest.param(
            Grown(),
            (torch.zeros(1, 2, 2),),
            {"cache": 1},
            r"\[1, 2, 2\] .* before a call and \[1, 2, 8\]",
            id="growing",
        ),
        pytest.param(
            Grown(),
            (torch.zeros(1, 2, 2),),
            {"cach": 1},
            "states names input cach; the examples are of x, cache",
            id="unknown input",
        ),
        pytest.param(
            Grown(),
            (torch.zeros(1, 2, 2),),
            {"cache": 5},
            "5 as the next value of cache; the result has 0, 1",
            id="no such result",
        ),
        pytest.param(
            Returned(),
            ({"conv": (torch.zeros(1, 2, 2),), "deep": torch.zeros(1, 2, 2)},),
            {"cache": 0},
            "has 2 tensors",
            id="two tensors",
        ),
        pytest.param(
            Counted(),
            (),
            None,
            "calls is a Python value that each call changes, from 0 to 1",
            id="python value",
        ),
        pytest.param(
            Late(), (), None, "past is made by the first call; register a buffer", id="made by the first call"
        ),
    ],
)
def test_states_that_cannot_be_kept_are_refused(
    module: Any, more: tuple[Any, ...], states: Any, message: str
) -> None:
    """The message has the state, the reason and the way out."""
    with pytest.raises(InputError, match=message):
        pulse.from_torch(module.eval(), (torch.randn(1, 2, 6), *more), dynamic={}, states=states)
