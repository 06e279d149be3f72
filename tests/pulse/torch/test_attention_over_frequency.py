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


def recurrent_rows(layer: Any, x: Any) -> Any:
    """The state before a layer is zeros, one for each row."""
    streams, frames = x.shape[:2]
    return layer(x.reshape(streams * frames, BANDS, WIDTH))[0].reshape(streams, frames, BANDS, -1)


def recurrent_rows_of_a_state(layer: Any, x: Any) -> Any:
    rows = x.flatten(0, 1)
    state = torch.linspace(-1, 1, WIDTH).expand(1, rows.shape[0], WIDTH)
    return layer(rows, (state, torch.tanh(state)))[0].unflatten(0, x.shape[:2])


def attention_rows(layer: Any, x: Any) -> Any:
    rows = x.flatten(0, 1)
    return layer(rows, rows, rows, need_weights=False)[0].unflatten(0, x.shape[:2])


def attention_rows_batch_second(layer: Any, x: Any) -> Any:
    rows = x.flatten(0, 1).transpose(0, 1)
    return layer(rows, rows, rows)[0].transpose(0, 1).unflatten(0, x.shape[:2])


def encoded_rows(layer: Any, x: Any) -> Any:
    return layer(x.flatten(0, 1)).unflatten(0, x.shape[:2])


def scaled_products(layer: Any, x: Any) -> Any:
    heads = layer(x).flatten(0, 1).unflatten(2, (2, -1)).transpose(1, 2)
    product = nn.functional.scaled_dot_product_attention(heads, heads, heads)
    return product.transpose(1, 2).reshape(x.shape)


def convolved_rows(layer: Any, x: Any) -> Any:
    return layer(x.flatten(0, 1).transpose(1, 2)).transpose(1, 2).unflatten(0, x.shape[:2])


@pytest.mark.parametrize(
    ("make", "call"),
    [
        pytest.param(
            lambda: nn.GRU(WIDTH, WIDTH, 2, batch_first=True, bidirectional=True), recurrent_rows, id="GRU"
        ),
        pytest.param(lambda: nn.LSTM(WIDTH, WIDTH, batch_first=True), recurrent_rows_of_a_state, id="LSTM"),
        pytest.param(
            lambda: nn.MultiheadAttention(WIDTH, 2, batch_first=True), attention_rows, id="attention"
        ),
        pytest.param(
            lambda: nn.MultiheadAttention(WIDTH, 2), attention_rows_batch_second, id="attention, batch second"
        ),
        pytest.param(
            lambda: nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True),
            encoded_rows,
            id="encoder layer",
        ),
        pytest.param(lambda: nn.Linear(WIDTH, WIDTH), scaled_products, id="scaled products"),
        pytest.param(lambda: nn.Conv1d(WIDTH, WIDTH, 3, padding=1), convolved_rows, id="convolution"),
    ],
)
def test_layers_within_a_frame_of_several_streams_stream(
    make: Callable[[], Any], call: Callable[[Any, Any], Any]
) -> None:
    """The frames of both streams are the rows of one batch."""
    torch.manual_seed(0)
    module, x = OverFrequency(make(), call).eval(), torch.randn(2, 12, BANDS, WIDTH)
    assert pulse.verify(module, example=x, dynamic={"x": {1: "T"}}, pulse=3).require().equal
