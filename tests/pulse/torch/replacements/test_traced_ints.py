"""Numbers that a module keeps in tensors, and what its author computes of lengths with them."""

from typing import Any

import pytest

import pulse
from tests.pulse.torch.exporter import F, torch


class Padded(torch.nn.Module):
    """A convolution that pads up to whole strides, its sizes in buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(1, 2, 6, 4)
        self.register_buffer("stride", torch.tensor(4))
        self.register_buffer("size", torch.tensor(6))
        self.register_buffer("total", self.size - self.stride)

    def forward(self, x: Any) -> Any:
        frames = (x.shape[-1] - self.size + self.total) / self.stride + 1
        whole = torch.ceil(frames).to(torch.int64) - 1
        extra = whole * self.stride + self.size - self.total - x.shape[-1]
        return self.conv(F.pad(x, (self.total, extra)))


class Counting(torch.nn.Module):
    """A module that assigns its buffer, which is no number then."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x: Any) -> Any:
        self.count = self.count + 1
        return x * self.count


class Framed(torch.nn.Module):
    """A loop over frames of which there is one, for every length; a range as a list; a number beside the tensor."""

    def forward(self, x: Any) -> Any:
        size = x.shape[-1]
        parts = [x[..., begin : begin + size] for begin in range(0, size, size)]
        axes = torch.arange(1, len(x.shape) - 1).tolist()
        return torch.cat(parts, -1).mean(dim=axes, keepdim=True), size


@pytest.mark.parametrize("module", [Padded(), Counting(), Framed()], ids=["padded", "counting", "framed"])
def test_every_length_is_exported(module: Any) -> None:
    """The comparison with the module runs at other lengths; its buffers are tensors as before."""
    buffers = dict(module.named_buffers())
    with pytest.warns(pulse.PulseWarning, match="time"):
        typed = pulse.from_torch(module, torch.randn(1, 1, 41)).analyse()
    assert dict(module.named_buffers()) == buffers
    pulse.verify(typed).require()


def test_a_mean_over_time_is_reported_as_such() -> None:
    """The mean is that of global layer normalisation."""

    class Norm(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            axes = torch.arange(1, len(x.shape)).tolist()
            mean = x.mean(axes, keepdim=True)
            return (x - mean) / (x.var(axes, keepdim=True, unbiased=False) + 1e-8).sqrt()

    model = pulse.from_torch(Norm(), torch.randn(1, 3, 40), dynamic={0: {2: "T"}})
    with pytest.raises(pulse.PulsifyError, match="a mean over time needs the whole stream"):
        model.analyse().pulsify()
