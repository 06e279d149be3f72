"""Recurrent layers of PyTorch: however many, whatever is around them, they are exported for every length."""

from typing import Any

import pytest

import pulse
from pulse.ops.recurrent import Recurrent
from tests.pulse.torch.exporter import nn, torch


class Layers(nn.Module):
    """Recurrent layers in a row, over axis 1."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)[0]
        return x


class Encoder(nn.Module):
    """Two layers of an LSTM after a strided convolution; the last states are outputs too."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 8, 4)
        self.lstm = nn.LSTM(8, 8, 2)

    def forward(self, x: Any) -> Any:
        return self.lstm(self.conv(x).permute(2, 0, 1))


class Spectrum(nn.Module):
    """A GRU over the frames of a short-time Fourier transform."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.gru = nn.GRU(33, 8, batch_first=True)

    def forward(self, x: Any) -> Any:
        z = torch.stft(x, 64, 16, window=self.window, center=False, return_complex=True)
        return self.gru(z.abs().transpose(1, 2))[0]


class DualPath(nn.Module):
    """Both directions over 6 bands, one over time, as in GTCRN and DPRNN; x [1, T, 6, 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.bands = nn.GRU(4, 2, batch_first=True, bidirectional=True)
        self.time = nn.GRU(4, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        x = x + self.bands(x[0])[0][None]
        return x + self.time(x[0].transpose(0, 1))[0].transpose(0, 1)[None]


def layer(kind: str, **options: Any) -> Any:
    return getattr(nn, kind)(8, 8, batch_first=True, **options)


@pytest.mark.parametrize(
    "layers",
    [
        [("GRU", {}), ("GRU", {})],
        [("GRU", {"bias": False}), ("LSTM", {"num_layers": 2})],
        [("RNN", {"num_layers": 2, "nonlinearity": "relu"}), ("RNN", {}), ("LSTM", {"bias": False})],
    ],
)
def test_layers_in_a_row_stream_without_delay(layers: list[tuple[str, dict[str, Any]]]) -> None:
    torch.manual_seed(0)
    module = Layers(*(layer(kind, **options) for kind, options in layers))
    typed = pulse.from_torch(module, torch.randn(1, 20, 8), {"x": {1: "T"}}).analyse().declutter()
    pulse.verify(typed, pulse=1).require()
    assert typed.pulsify(pulse=1).outputs[0].delay == 0


@pytest.mark.parametrize(
    ("module", "example", "axis", "pulse_frames"),
    [(Encoder, (1, 1, 200), 2, 4), (Spectrum, (1, 400), 1, 16), (DualPath, (1, 12, 6, 4), 1, 1)],
)
def test_layers_after_other_layers_stream(
    module: type[Any], example: tuple[int, ...], axis: int, pulse_frames: int
) -> None:
    torch.manual_seed(0)
    typed = pulse.from_torch(module(), torch.randn(example), {"x": {axis: "T"}}).analyse().declutter()
    pulse.verify(typed, pulse=pulse_frames).require()


def test_both_directions_in_time_are_compared_and_refused() -> None:
    """The comparison of module and model is of both directions; the refusal is that of the stream."""
    torch.manual_seed(0)
    module = Layers(nn.RNN(8, 4, 2, nonlinearity="relu", batch_first=True, bidirectional=True), layer("GRU"))
    model = pulse.from_torch(module, torch.randn(1, 20, 8), {"x": {1: "T"}})
    with pytest.raises(pulse.PulsifyError, match="in reverse direction"):
        model.analyse().declutter().pulsify()


class Projected(nn.Module):
    """LSTMs with projections: over time, and in both directions over 6 bands; x [1, T, 6, 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.bands = nn.LSTM(4, 5, proj_size=2, batch_first=True, bidirectional=True)
        self.time = nn.LSTM(24, 8, 2, bias=False, proj_size=3, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.time(self.bands(x[0])[0].flatten(1)[None])[0]


def test_projections_are_loops() -> None:
    torch.manual_seed(0)
    model = pulse.from_torch(Projected(), torch.randn(1, 12, 6, 4), {"x": {1: "T"}})
    pulse.verify(model, pulse=1).require()


class Segments(nn.Module):
    """A layer within segments of 8 frames, one over segments, and its states again within each (SkiM); x [1, T, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer, self.last = (
            nn.LSTM(size, 4, batch_first=True, bias=False) for size in (3, 4, 3)
        )

    def forward(self, x: Any) -> Any:
        segments = x.unflatten(1, (-1, 8))[0]
        states = [self.outer(state)[0].transpose(0, 1) for state in self.inner(segments)[1]]
        return self.last(segments, tuple(state.contiguous().transpose(0, 1) for state in states))[0].flatten(
            0, 1
        )[None]


def test_states_of_a_changing_batch_keep_their_size() -> None:
    torch.manual_seed(0)
    model = pulse.from_torch(Segments(), torch.randn(1, 32, 3), {"x": {1: "T"}}, lengths=[{"T": 48}])
    pulse.verify(model, pulse=8).require()


def test_the_layers_are_pytorch_s_own_afterwards() -> None:
    module = layer("GRU")
    x = torch.randn(1, 20, 8)
    before = module(x)[0]
    pulse.from_torch(module, x, {"input": {1: "T"}})
    assert torch.equal(module(x)[0], before)
    assert before.abs().max() > 0


class Packed(nn.Module):
    """Packed sequences around an LSTM of two layers and a GRU, as recognisers write them for a batch."""

    def __init__(self, enforce_sorted: bool) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(3, 4, 2, batch_first=True), nn.GRU(4, 5, batch_first=True)
        self.enforce_sorted = enforce_sorted

    def forward(self, x: Any, lengths: Any) -> Any:
        for layer in (self.lstm, self.gru):
            packed = nn.utils.rnn.pack_padded_sequence(
                x, lengths.cpu(), batch_first=True, enforce_sorted=self.enforce_sorted
            )
            y, _ = layer(packed)
            x, lengths = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.size(1))
        return x, lengths


@pytest.mark.parametrize("enforce_sorted", [True, False])
@pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
def test_packed_sequences_of_full_length_are_layers(enforce_sorted: bool) -> None:
    """A stream has no padding: their lengths are the input's."""
    torch.manual_seed(0)
    model = pulse.from_torch(Packed(enforce_sorted), (torch.randn(1, 12, 3), torch.tensor([12])))
    typed = model.analyse().declutter()
    assert sum(isinstance(node.op, Recurrent) for node in typed.graph.nodes if node.outputs) == 3
    pulse.verify(typed, pulse=2).require()
