"""Functions of complex numbers, which are computed with their real and imaginary parts."""

from collections.abc import Callable
from typing import Any

import pytest

import pulse
from tests.pulse.torch.exporter import F, nn, torch


class ComplexFunctions(nn.Module):
    """A forward that is given two channels of complex numbers; its results become pairs."""

    def __init__(self, forward: Callable[[Any], list[Any]]) -> None:
        super().__init__()
        self.written = forward

    def forward(self, x: Any) -> Any:
        results = self.written(torch.complex(x[:, :2], x[:, 2:]))
        return [torch.view_as_real(result.resolve_conj()) for result in results]


def powers(z: Any) -> list[Any]:
    """Powers, roots and logarithms; a sign has no angle at 0."""
    signs = torch.sgn(torch.cat([z, torch.zeros_like(z)], 1))
    return [z**2, z.square(), z.pow(3), (z + 4) ** -0.5, torch.sqrt(z), torch.log(z), signs]


def products(z: Any) -> list[Any]:
    weight = torch.complex(torch.ones(2, 2), torch.eye(2))
    rows, conjugate = z.transpose(1, 2), z.conj()
    return [
        F.linear(rows, weight, torch.tensor([1j, 2.0])),
        F.linear(rows, weight),
        torch.tensordot(rows, weight, dims=([2], [0])),
        torch.einsum("bct,bct,cd->bdt", z, conjugate, weight),
        torch.einsum("bct->btc", z),
    ]


def choices(z: Any) -> list[Any]:
    """Values that are chosen by a condition, and magnitudes of several channels."""
    size = z.abs()
    norm = torch.linalg.norm(z, dim=1, keepdim=True)
    return [
        torch.where(size > 1, z, torch.zeros_like(z)),
        torch.where(z.real > 0, z, 2j),
        z.masked_fill(size > 1, 0),
        z / (norm + z.norm(dim=1, keepdim=True)),
    ]


def moved_parts(z: Any) -> list[Any]:
    """Functions with a named axis, and others that only move elements."""
    outer = z[:, :, None] * z[:, None].conj()
    return [
        z.split([1, 1], dim=1)[1],
        torch.stack([z, z.conj()], dim=2),
        outer.diagonal(dim1=1, dim2=2),
        torch.hstack([z, z.conj()]) + torch.vstack([z, z]).reshape(1, 4, -1),
        z.select(1, 0).unsqueeze(1).tile(1, 2, 1),
        z.repeat_interleave(2, 1),
        z.gather(1, torch.ones_like(z.real, dtype=torch.int64)),
    ]


def writes(z: Any) -> list[Any]:
    """Writes of numbers, of real and of complex values, and by a mask."""
    bands, frames, masked = z.clone(), z.clone(), z.clone()
    bands[:, 0] = 0
    bands[..., 1, :] = z[:, 0].real
    frames[..., 1:] = frames[..., 1:] - 0.5j * frames[..., :-1]
    frames[:, 1:] = 1 + 2j
    masked[masked.abs() > 1] = 0
    masked.mul_(2j)
    return [bands, frames, masked]


def written_frames(z: Any) -> list[Any]:
    """A loop that writes complex frames, and reads the one before."""
    y, state = torch.zeros_like(z), torch.zeros(1, 2, dtype=z.dtype)
    for t in range(1, z.shape[-1]):
        state = 0.9j * state + z[..., t]
        y[:, :, t] = state - 0.5 * y[:, :, t - 1]
    return [y]


@pytest.mark.parametrize(
    "forward",
    [powers, products, choices, moved_parts, writes, written_frames],
    ids=lambda forward: forward.__name__,
)
def test_functions_of_complex_numbers_stream(forward: Callable[[Any], list[Any]]) -> None:
    torch.manual_seed(0)
    pulse.verify(
        pulse.from_torch(ComplexFunctions(forward), torch.randn(1, 4, 24), {"x": {2: "T"}})
    ).require()
