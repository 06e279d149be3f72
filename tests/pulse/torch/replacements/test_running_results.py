"""Running results that ONNX has no operators for: products, extremes, sums of exponentials."""

from typing import Any

import pytest

import pulse
from tests.pulse.torch.exporter import F, nn, torch


class MinGRU(nn.Module):
    """A gated layer without a loop: sums in the logarithm, as minGRU has them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 8)

    def forward(self, x: Any) -> Any:
        hidden, gate = self.inner(x).chunk(2, -1)
        kept_share, new = -F.softplus(gate), -F.softplus(-gate)
        value = new + torch.where(hidden >= 0, (F.relu(hidden) + 0.5).log(), -F.softplus(-hidden))
        total = kept_share.cumsum(1)
        return (total + (value - total).logcumsumexp(dim=1)).exp()


class RunningResults(nn.Module):
    """Products and extremes so far, and where these were."""

    def forward(self, x: Any) -> Any:
        smallest, place = torch.cummin(x, -1)
        largest = x.cummax(2)
        product = torch.cumprod(0.9 + 0.1 * x, dim=2)
        return product, smallest, place, largest.values, largest.indices


class Empty(nn.Module):
    """The state before the first large value: sums of no exponentials."""

    def forward(self, x: Any) -> Any:
        return torch.logcumsumexp(torch.where(x > 1.0, x, -torch.inf), 2).clamp(min=-100.0)


class OverChannels(nn.Module):
    """Running results along an axis of constant size."""

    def forward(self, x: Any) -> Any:
        steps = torch.cumprod(torch.tensor([1, 3]), 0)[:, None]
        return x.cumprod(1) + x.logcumsumexp(1) * steps, x.cummax(1).indices


@pytest.mark.parametrize(
    ("module", "shape", "axis"),
    [
        (OverChannels(), (1, 2, 12), 2),
        (MinGRU(), (1, 12, 3), 1),
        (RunningResults(), (1, 2, 12), 2),
        (Empty(), (1, 2, 12), 2),
    ],
    ids=["over channels", "minGRU", "products and extremes", "nothing at first"],
)
def test_running_results_stream(module: Any, shape: tuple[int, ...], axis: int) -> None:
    torch.manual_seed(0)
    model = pulse.from_torch(module, torch.randn(*shape), {"x": {axis: "T"}})
    pulse.verify(model, pulse=3).require()
