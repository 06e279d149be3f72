"""Attention, quantisers and chunks as published packages write them: each form once, as small as it can be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.program.whole_stream import stream_whole
from pulse.proof.trials import plan_trials
from tests.pulse.torch.exporter import F, nn, torch

WIDTH = 4


class StreamedAttention(nn.Module):
    """A head whose mask is a function of the places of queries and keys."""

    def __init__(self, visible: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.is_visible = visible
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1])
        hidden = ~self.is_visible(places[:, None], places)
        q, k, v = self.qkv(x).chunk(3, -1)
        return ((q @ k.transpose(1, 2) / 2).masked_fill(hidden, -torch.inf).softmax(-1)) @ v


def chunked_by_loops(queries: Any, keys: Any) -> Any:
    """WeNet's ``subsequent_chunk_mask``: from this many chunks before to the end of the own one."""
    chunk = torch.div(queries, 4, rounding_mode="trunc")
    begin = torch.clamp((chunk - 2) * 4, min=0)
    end = torch.clamp((chunk + 1) * 4, max=keys.shape[-1])
    return (keys >= begin) & (keys < end)


def chunked_by_distance(queries: Any, keys: Any) -> Any:
    """NeMo's ``chunked_limited``: the distance of both chunks."""
    between = torch.div(queries, 3, rounding_mode="trunc") - torch.div(keys, 3, rounding_mode="trunc")
    return torch.logical_and(torch.le(between, 2), torch.ge(between, 0))


@pytest.mark.parametrize(("visible", "ahead"), [(chunked_by_loops, 3), (chunked_by_distance, 2)])
def test_chunked_attention_streams(visible: Callable[[Any, Any], Any], ahead: int) -> None:
    """Streams have any length; those of a proof are so long that keys leave the memory."""
    torch.manual_seed(0)
    typed = pulse.from_torch(StreamedAttention(visible), torch.randn(1, 21, WIDTH), {"x": {1: "T"}}).analyse()
    report = pulse.verify(typed, pulse=1, lengths=[1, 9, 70])
    report.require()
    pulsed = typed.declutter().pulsify(pulse=1)
    assert pulsed.outputs[0].delay == ahead
    assert report.has_overflowed
    assert 8 <= report.trials.buffered < plan_trials(pulsed).longest


def test_attention_with_kept_frames_streams_up_to_a_context() -> None:
    """Sinks and a window: no mask of a distance, so the stream has a limit that the user names."""
    torch.manual_seed(0)

    def with_sinks(queries: Any, keys: Any) -> Any:
        return (keys <= queries) & ((queries - keys < 5) | (keys < 2))

    model = pulse.from_torch(StreamedAttention(with_sinks), torch.randn(1, 21, WIDTH), {"x": {1: "T"}})
    with pytest.raises(pulse.PulsifyError, match="max_context"):
        model.analyse().declutter().pulsify(pulse=1)
    pulse.verify(model, pulse=2, max_context=40).require()


class StreamedTransformer(nn.Module):
    """PyTorch's own layers, with masks whose values they compare with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)
        self.memory = nn.Parameter(torch.randn(1, 5, 8))

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1])
        distance = places[:, None] - places
        mask = (distance < 0) | (distance > 5)
        return self.decoder(self.encoder(x, mask=mask), self.memory, tgt_mask=mask)


def test_masks_that_are_passed_to_transformers_stream() -> None:
    torch.manual_seed(0)
    typed = pulse.from_torch(StreamedTransformer(), torch.randn(1, 16, 8), {"x": {1: "T"}}).analyse()
    pulse.verify(typed.declutter(), pulse=4).require()


class StreamedDualPath(nn.Module):
    """Chunks that overlap by half, a layer over the frames of each one, and the chunks added again."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.GRU(2, 2, batch_first=True)
        self.outer = nn.GRU(2, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        frames = x.shape[-1]
        chunks = F.unfold(x.unsqueeze(-1), (8, 1), padding=(8, 0), stride=(4, 1))
        chunks = chunks.reshape(2, 8, -1).permute(2, 1, 0)
        chunks = chunks + self.inner(chunks)[0]
        chunks = chunks + self.outer(chunks.transpose(0, 1))[0].transpose(0, 1)
        chunks = chunks.permute(2, 1, 0).reshape(1, 16, -1)
        return F.fold(chunks, (frames, 1), (8, 1), padding=(8, 0), stride=(4, 1)).squeeze(-1)


def test_chunks_that_overlap_stream() -> None:
    torch.manual_seed(0)
    model = pulse.from_torch(StreamedDualPath(), torch.randn(1, 2, 32), {"x": {2: "T"}})
    pulse.verify(model, pulse=4).require()


class Quantiser(nn.Module):
    """Residual codes: the nearest row of each table, the first one of several that are equally near."""

    def __init__(self) -> None:
        super().__init__()
        rows = torch.randint(-2, 3, (2, 6, 3)).float()
        rows[:, 3:] = rows[:, :3]
        self.register_buffer("rows", rows)

    def forward(self, x: Any) -> Any:
        left, codes = x, list[Any]()
        for rows in self.rows:
            distances = left.square().sum(-1, keepdim=True) - 2 * left @ rows.T + rows.square().sum(-1)
            codes.append(distances.argmin(-1))
            left = left - rows[codes[-1]]
        return torch.stack(codes, 1), x - left


def test_residual_codes_are_exact() -> None:
    """Each row is twice in its table, and inputs lie in the middle of two: whole numbers, without rounding."""
    torch.manual_seed(0)
    quantiser, x = Quantiser(), torch.randint(-2, 3, (1, 50, 3)).float()
    typed = pulse.from_torch(quantiser, x, {"x": {1: "T"}}).analyse().declutter()
    pulse.verify(typed, pulse=1).require()
    codes, quantised = stream_whole(typed.pulsify(pulse=1).compile(), {"x": x.numpy()}, 0.0).values()
    for streamed, expected in zip((codes, quantised), quantiser(x)):
        np.testing.assert_array_equal(streamed, expected.numpy())
    assert codes.max() < 3


class Mirrored(nn.Module):
    """Two causal layers that mirror their first frames."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(1, 1, 5), nn.Conv1d(1, 1, 3)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(F.pad(x, (layer.kernel_size[0] - 1, 0), "reflect"))
        return x


def test_a_mirrored_start_is_replaced_on_request() -> None:
    """The delay of the mirrors goes; the warning says that the model is another one. Two threads give the same bits."""
    torch.manual_seed(0)
    typed = pulse.from_torch(Mirrored(), torch.randn(1, 1, 30), {"x": {2: "T"}}).analyse().declutter()
    with pytest.warns(pulse.PulseWarning, match="a different model"):
        other = typed.with_constant_start()
    assert [model.pulsify(pulse=1).outputs[0].delay for model in (typed, other)] == [6, 0]
    pulse.verify(other, pulse=1).require()
    x = {"x": torch.randn(1, 1, 30).numpy()}
    single, double = (pulse.stream(other, pulse=4, threads=threads) for threads in (1, 2))
    for alone, shared in zip(stream_whole(single, x, 0.0).values(), stream_whole(double, x, 0.0).values()):
        np.testing.assert_array_equal(alone, shared)


class LastState(nn.Module):
    """The state at the end of a sequence: its length does not follow the input's."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(3, 3, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x)[1][0][-1]


def test_a_module_without_frames_is_reported() -> None:
    with pytest.warns(
        pulse.PulseWarning, match=r'no axis is assumed to be time: .*dynamic=\{"x": \{2: "T"\}\}'
    ):
        model = pulse.from_torch(LastState(), torch.randn(1, 12, 3))
    with pytest.raises(pulse.PulseError, match=r"no input has a symbolic dim.* dynamic=.* of from_torch"):
        pulse.stream(model)
