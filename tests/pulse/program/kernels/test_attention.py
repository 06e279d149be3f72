"""Banded attention against its op, as plain Python and compiled; nothing outside of the stream is read."""

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.jit.language.simd import LANES
from pulse.ops.attention import BandedAttention, BandedAttentionStream
from pulse.ops.clock import Clock
from pulse.program.kernels.attention import band_attention, scratch_size
from pulse.support.bounds import FAR
from tests.pulse.program.kernels.positional_rows import At, run_both


def masked_bias(rng: np.random.Generator, *shape: int) -> np.ndarray:
    bias = rng.standard_normal(shape).astype(np.float32)
    return np.where(rng.random(shape) < 0.3, np.float32(-np.inf), bias)


def check(
    pulse: int,
    depth: int,
    width: int,
    band: int,
    back: int,
    period: int,
    number: int,
    end: int,
    empty: float,
    heads: int = 1,
) -> None:
    """Two groups whose rows lie with gaps; what no row may read is NaN."""
    rng = np.random.default_rng([pulse, depth, width, band])
    offset = 2
    op = BandedAttention(0.4, masked_bias(rng, 2, heads, period, band), back, empty)
    span = pulse + band - 1
    q = rng.standard_normal((2, pulse, heads * depth + 1)).astype(np.float32)
    k = rng.standard_normal((2, span, heads * depth + 3)).astype(np.float32)
    v = rng.standard_normal((2, span, heads * width + 2)).astype(np.float32)
    frames = np.arange(span) + number * pulse - offset - back
    outside = (frames < 0) | (frames >= end)
    k[:, outside], v[:, outside] = np.nan, np.nan
    symbol = SymbolScope().symbol("T")
    stream = BandedAttentionStream(op, offset, TDim.of(symbol))
    clock = Clock(symbol, number, None if end == FAR else end)
    (wanted,) = stream.step(
        [by_head(q, heads, depth), by_head(k, heads, depth), by_head(v, heads, width)], [], clock
    )
    y = np.full((2, pulse, heads * width + 1), 7, np.float32)
    bias = np.ascontiguousarray(np.moveaxis(op.bias, 1, -1))
    arrays = [
        *(
            q,
            k,
            v,
            bias,
            y,
            np.zeros(scratch_size(2, heads, band), np.float32),
            np.array([number, 0]),
            np.array([end]),
        ),
        *(np.array([0, x[0].size]) for x in (q, k, v, bias, y)),
    ]
    steps = [x.shape[2] for x in (q, k, v, y)]
    numbers = [pulse, *steps, heads, depth, width, band, back, period, offset, 0.4, empty]
    places = [At(n) for n in range(8)], [At(n) for n in range(8, 13)]
    for results in run_both(band_attention, arrays, *places[0], 2, *places[1], *numbers):
        np.testing.assert_allclose(by_head(results[4], heads, width), wanted, 1e-5, 1e-6)
        assert (results[4][..., heads * width] == 7).all()


def by_head(x: np.ndarray, heads: int, channels: int) -> np.ndarray:
    """[groups, frames, heads * channels and more] to [groups, heads, frames, channels]."""
    parts = x[..., : heads * channels].reshape(*x.shape[:2], heads, channels)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3))


@pytest.mark.parametrize("depth", [1, 4, 16, 40])
@pytest.mark.parametrize("width", [1, 16, 21, 64, 90])
@pytest.mark.parametrize("band", [1, 3, 16, 21])
def test_all_sizes_agree_with_numpy(depth: int, width: int, band: int) -> None:
    check(3, depth, width, band, band // 2, 1, 30, FAR, np.nan)


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("band", [1, 3, 4, 8, 21])
@pytest.mark.parametrize("end", [31, FAR])
def test_heads_that_share_a_vector(heads: int, band: int, end: int) -> None:
    channels = LANES // heads
    check(3, channels, channels, band, band // 2, 2, 10, end, np.nan, heads)


@pytest.mark.parametrize("number", [0, 1, 2, 5])
@pytest.mark.parametrize("back", [-1, 0, 4, 7])
@pytest.mark.parametrize("empty", [0.0, np.nan])
def test_ends_of_the_stream(number: int, back: int, empty: float) -> None:
    for end in (0, 1, 13, 17, FAR):
        check(3, 5, 6, 6, back, 2, number, end, empty)
        check(3, 4, 4, 6, back, 2, number, end, empty, heads=4)


def test_large_scores() -> None:
    """The largest is taken off before the exponential."""
    q, v = np.full((1, 4), 100, np.float32), np.arange(6, dtype=np.float32)[:, None]
    k = np.arange(24, dtype=np.float32).reshape(6, 4)
    arrays = [q, k, v, np.zeros(6, np.float32), np.zeros(1, np.float32), np.zeros(6, np.float32)]
    arrays += [np.array([5]), np.array([FAR]), np.zeros(1, np.int64)]
    numbers = [1, 4, 4, 1, 1, 1, 4, 1, 6, 5, 1, 0, 1.0, 0.0]
    batches = [At(8)] * 5
    for results in run_both(band_attention, arrays, *[At(n) for n in range(8)], 1, *batches, *numbers):
        assert results[4].tolist() == [5.0]


def test_one_head_may_see_nothing() -> None:
    """It becomes ``empty``; the head beside it, with much larger scores, does not change it."""
    x = np.ones((1, 16), np.float32)
    k, v = np.repeat([[1.0] * 8 + [1e4] * 8], 5, axis=0), np.arange(80).reshape(5, 16)
    bias = np.zeros((5, 2))
    bias[:, 0] = -np.inf
    arrays = [x, *(each.astype(np.float32) for each in (k, v, bias)), np.zeros((1, 16), np.float32)]
    arrays += [np.zeros(10 + LANES, np.float32), np.array([4]), np.array([FAR]), np.zeros(1, np.int64)]
    numbers = [1, 16, 16, 16, 16, 2, 8, 8, 5, 4, 1, 0, 1.0, -3.0]
    for results in run_both(band_attention, arrays, *[At(n) for n in range(8)], 1, *[At(8)] * 5, *numbers):
        assert (results[4][0, :8] == -3).all()
        np.testing.assert_allclose(results[4][0, 8:], v[:, 8:].mean(axis=0), 1e-6)
