"""Attention within a frame, whose time is PyTorch's batch: the projections are given rows of all frames."""

from collections.abc import Callable
from typing import Any

import pytest

import pulse
from tests.pulse.torch.exporter import nn, torch

BANDS, WIDTH = 6, 8


class OverFrequency(nn.Module):
    """x [1, T, bands, width] through a layer, whose batch has the frames of all streams."""

    def __init__(self, layer: Any, call: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layer = layer
        self.call = call

    def forward(self, x: Any) -> Any:
        return self.call(self.layer, x)


def batch_first(layer: Any, x: Any) -> Any:
    rows = x.reshape(-1, BANDS, WIDTH)
    return (rows + layer(rows, rows, rows, need_weights=False)[0]).view(x.shape)


def batch_second(layer: Any, x: Any) -> Any:
    rows = x[0].transpose(0, 1)
    return layer(rows, rows, rows)[0].transpose(0, 1)[None]


def encoder_layer(layer: Any, x: Any) -> Any:
    return layer(x[0])[None]


def bands_first(layer: Any, x: Any) -> Any:
    return layer(x[0].transpose(0, 1)).transpose(0, 1)[None]


def apply_to_rows(layer: Any, x: Any) -> Any:
    """A linear layer and a normalisation of rows, with the bands outside of time."""
    rows = layer(x[0].transpose(0, 1).reshape(-1, WIDTH))
    return rows.view(BANDS, -1, WIDTH).transpose(0, 1)[None]


@pytest.mark.parametrize(
    ("make", "call"),
    [
        pytest.param(
            lambda: nn.MultiheadAttention(WIDTH, 2, batch_first=True), batch_first, id="batch first"
        ),
        pytest.param(lambda: nn.MultiheadAttention(WIDTH, 2), batch_second, id="batch second"),
        pytest.param(
            lambda: nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True),
            encoder_layer,
            id="encoder layer",
        ),
        pytest.param(lambda: nn.TransformerEncoderLayer(WIDTH, 2, 16), bands_first, id="bands first"),
        pytest.param(
            lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU()),
            apply_to_rows,
            id="linear",
        ),
    ],
)
def test_layers_within_a_frame_stream(make: Callable[[], Any], call: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(0)
    module, x = OverFrequency(make(), call).eval(), torch.randn(1, 20, BANDS, WIDTH)
    typed = pulse.from_torch(module, x, {"x": {1: "T"}})
    report = pulse.verify(typed, pulse=1).require()
    assert report.equal
    assert [port.delay for port in typed.analyse().declutter().pulsify(pulse=1).outputs] == [0]
