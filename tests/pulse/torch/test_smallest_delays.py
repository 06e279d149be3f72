"""Exported pipelines have the minimum delay, by the oracle over the model that the exporter gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pulse
from tests.pulse.pulsify.delay_oracle import smallest_delay
from tests.pulse.torch.exporter import F, nn, torch


class Pipeline(nn.Module):
    """A function of [1, 1, T], and the layers that it uses."""

    def __init__(self, forward: Callable[[Any], Any], *layers: Any) -> None:
        super().__init__()
        self.pipeline, self.layers = forward, nn.ModuleList(layers)

    def forward(self, x: Any) -> Any:
        return self.pipeline(x)


def strong(layer: Any) -> Any:
    """A layer whose weights are all away from zero, so that whatever it sees counts."""
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.sign(weight) * (0.5 + torch.rand_like(weight)) / max(weight[0].numel(), 1))
    return layer


def window_of(rng: Any, frames: int) -> Any:
    kinds = (torch.hann_window, torch.hamming_window, torch.ones)
    kind = kinds[int(rng.integers(3))]
    return kind(frames) if kind is torch.ones else kind(frames, periodic=bool(rng.integers(2)))


def hops(rng: Any) -> tuple[int, int]:
    hop = int(rng.integers(3, 7))
    return hop, hop * int(rng.integers(2, 5)) + int(rng.integers(2)) * 2


def spectra(rng: Any) -> tuple[Any, int, int]:
    """Magnitudes, or bands of powers in decibels."""
    hop, size = hops(rng)
    window, centre = window_of(rng, size), bool(rng.integers(2))
    mode = ("reflect", "constant")[int(rng.integers(2))]
    bands = torch.rand(3, size // 2 + 1) + 0.1 if rng.integers(2) else None

    def forward(x: Any) -> Any:
        z = torch.stft(x[:, 0], size, hop, window=window, center=centre, pad_mode=mode, return_complex=True)
        return z.abs() if bands is None else torch.log(bands @ z.abs().square() + 1e-2)

    return Pipeline(forward), hop, 3 * size


def masks(rng: Any) -> tuple[Any, int, int]:
    """There and back, with gains, or with those of a GRU.

    Mirrored samples that a window gives weight to would be waited for twice: no wire computes several frames at once.
    """
    hop, size = hops(rng)
    hop -= hop % 2
    size = hop * (2 + int(rng.integers(3)))
    hann = bool(rng.integers(2))
    window = torch.hann_window(size) if hann else torch.hamming_window(size)
    mode = "reflect" if hann else "constant"
    follows = bool(rng.integers(2))
    gru = strong(nn.GRU(size // 2 + 1, size // 2 + 1, batch_first=True)) if rng.integers(2) else None

    def forward(x: Any) -> Any:
        z = torch.stft(x[:, 0], size, hop, window=window, pad_mode=mode, return_complex=True)
        gains = torch.sigmoid(z.abs()) if gru is None else gru(z.abs().transpose(1, 2))[0].transpose(1, 2)
        return torch.istft(z * gains, size, hop, window=window, length=x.shape[-1] if follows else None)[
            :, None
        ]

    return Pipeline(forward, *([] if gru is None else [gru])), hop, 4 * size


def encoders(rng: Any) -> tuple[Any, int, int]:
    """Strided convolutions with padding on one side or both, and a causal trim."""
    stride = int(rng.integers(2, 4))
    kernel = 2 * stride + int(rng.integers(2))
    first = strong(nn.Conv1d(1, 2, 3, padding=int(rng.integers(2))))
    second = strong(nn.Conv1d(2, 2, kernel, stride=stride))
    third = strong(nn.Conv1d(2, 2, 3, dilation=2))
    before, after = int(rng.integers(kernel)), int(rng.integers(2))
    sides = (4, 0) if rng.integers(2) else (2, 2)

    def forward(x: Any) -> Any:
        y = second(F.pad(first(x), (before, after)))
        return third(F.pad(y, sides))

    return Pipeline(forward, first, second, third), stride, 60


def decoders(rng: Any) -> tuple[Any, int, int]:
    """Transposed convolutions, trimmed at one end or both."""
    stride = int(rng.integers(2, 4))
    up = strong(nn.ConvTranspose1d(1, 2, 2 * stride + int(rng.integers(2)), stride=stride, bias=False))
    last = strong(nn.Conv1d(2, 1, 3, padding=1))
    front, end = int(rng.integers(stride + 1)), int(rng.integers(1, stride + 1))
    return Pipeline(lambda x: last(up(x)[..., front:-end]), up, last), 1, 20


def resamplers(rng: Any) -> tuple[Any, int, int]:
    """A kernel whose ends are zeros, down by a stride, or up by phases."""
    ratio, half = int(rng.integers(2, 4)), int(rng.integers(4, 9))
    ends = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    kernel = F.pad(0.2 + torch.rand(1, 1, 2 * half - 3), ends)
    if rng.integers(2):
        return Pipeline(lambda x: F.conv1d(F.pad(x, (half, half + ratio)), kernel, stride=ratio)), ratio, 60
    return Pipeline(lambda x: F.conv_transpose1d(x, kernel, stride=ratio)[..., half:-half]), 1, 30


KINDS = (spectra, masks, encoders, decoders, resamplers)


def assert_delay_is_smallest(kind: Callable[[Any], tuple[Any, int, int]], seed: int) -> None:
    """The delay is the minimum, and the stream equals the model."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    module, pulse_frames, reach = kind(rng)
    pulse_frames *= int(rng.integers(1, 3))
    typed = pulse.from_torch(module.eval(), torch.randn(1, 1, 120), {"x": {2: "T"}}).analyse().declutter()
    (output,) = typed.pulsify(pulse=pulse_frames).outputs
    assert output.delay == smallest_delay(typed, pulse_frames, output.frames, reach), (kind.__name__, seed)
    pulse.verify(typed, pulse=pulse_frames).require()


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_pipeline_has_the_smallest_delay(kind: Callable[[Any], tuple[Any, int, int]]) -> None:
    assert_delay_is_smallest(kind, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 16))
@pytest.mark.parametrize("kind", KINDS)
def test_exported_pipelines_have_the_smallest_delay(
    kind: Callable[[Any], tuple[Any, int, int]], seed: int
) -> None:
    assert_delay_is_smallest(kind, seed)
