"""Attention as packages write it that keep tables of positions, or biases, from call to call."""

from typing import Any

import pytest

import pulse
from tests.pulse.torch.exporter import nn, torch

WIDTH, BACK = 8, 6


class RelativeAttention(nn.Module):
    """Heads of a causal window; subclasses add what they know of positions."""

    context: int | None = None
    """The longest stream whose positions are known."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Any) -> Any:
        frames = x.shape[1]
        q, k, v = (part.view(1, frames, 2, 4).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        distances = torch.arange(frames)[:, None] - torch.arange(frames)
        q, k, bias = self.place(q, k, distances)
        scores = (q @ k.transpose(-1, -2) * 0.5 + bias).masked_fill(
            (distances < 0) | (distances > BACK), -torch.inf
        )
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Slopes(RelativeAttention):
    """The bias of the longest call so far is a buffer, made by the call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bias", None, persistent=False)

    def place(self, q: Any, k: Any, distances: Any) -> Any:
        return q, k, (self.make(len(distances)) + self.make(len(distances))) / 2

    def make(self, frames: int) -> Any:
        if self.bias is not None and self.bias.shape[-1] >= frames:
            return self.bias[..., -frames:, -frames:]
        steps = torch.arange(frames)
        bias = -(steps[:, None] - steps).abs() * torch.tensor([0.5, 0.25])[:, None, None]
        self.register_buffer("bias", bias, persistent=False)
        return self.bias


class Rotary(RelativeAttention):
    """The angles of the longest call so far stand in a buffer of 512 rows."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("angles", torch.zeros(512, 4), persistent=False)
        self.filled = 0

    def place(self, q: Any, k: Any, distances: Any) -> Any:
        return self.turn(q), self.turn(k), 0.0

    def turn(self, x: Any) -> Any:
        angles = self.make(x.shape[-2])
        return x * angles.cos() + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * angles.sin()

    def make(self, frames: int) -> Any:
        if frames <= self.filled:
            return self.angles[:frames].detach()
        angles = torch.arange(frames)[:, None] * torch.tensor([1.0, 1.0, 0.01, 0.01])
        self.angles[:frames] = angles.detach()
        self.filled = frames
        return angles


class Shaw(RelativeAttention):
    """A vector for each distance up to a largest one."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors = nn.Embedding(9, 4)

    def place(self, q: Any, k: Any, distances: Any) -> Any:
        near = self.vectors(distances.clamp(-4, 4) + 4)
        return q, k, torch.einsum("bhnd,nrd->bhnr", q, near) * 0.5


class Shifted(RelativeAttention):
    """Positions of past frames, shifted by a column of zeros, as in Transformer-XL."""

    context = 40

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Linear(4, 8, bias=False)
        self.more = nn.Parameter(torch.randn(2, 4))

    def place(self, q: Any, k: Any, distances: Any) -> Any:
        frames = len(distances)
        angles = torch.outer(torch.arange(frames - 1, -1, -1.0), torch.tensor([1.0, 0.1]))
        places = self.positions(torch.cat([angles.sin(), angles.cos()], -1)).view(frames, 2, 4)
        scores = torch.einsum("bhid,jhd->bhij", q + self.more[:, None], places)
        wide = torch.cat([torch.zeros(*scores.shape[:3], 1), scores], -1)
        return q, k, wide.view(1, 2, frames + 1, frames)[:, :, 1:].view_as(scores) * 0.5


class Strided(RelativeAttention):
    """Positions of both directions from a table, shifted by strides, as in icefall's Conformer and Zipformer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.randn(199, 4)

    def place(self, q: Any, k: Any, distances: Any) -> Any:
        frames = len(distances)
        near = self.table[100 - frames : 99 + frames]
        return q, k, self.shift(torch.matmul(q, near.t()), frames)

    def shift(self, scores: Any, frames: int) -> Any:
        assert scores.shape[-1] == 2 * frames - 1
        *batch, rows, columns = scores.stride()
        return scores.as_strided(
            (1, 2, frames, frames), (*batch, rows - columns, columns), storage_offset=columns * (frames - 1)
        )


class Gathered(Strided):
    """The same by indices, as icefall exports it."""

    def shift(self, scores: Any, frames: int) -> Any:
        index = torch.arange(frames - 1, -1, -1)[:, None] + torch.arange(frames)
        return torch.gather(scores, 3, index.expand(1, 2, frames, frames))


@pytest.mark.parametrize("kind", [Slopes, Rotary, Shaw, Shifted, Strided, Gathered])
def test_positions_are_kept_and_stream(kind: type[RelativeAttention]) -> None:
    torch.manual_seed(0)
    model = pulse.from_torch(kind(), torch.randn(1, 20, WIDTH), {"x": {1: "T"}})
    pulse.verify(model, pulse=3, max_context=kind.context).require()
