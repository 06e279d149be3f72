"""Banded attention against its op, as plain Python and compiled; nothing outside the stream is read."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.jit.language.simd import LANES
from pulse.ops.attention import BandedAttention, BandedAttentionStream
from pulse.ops.clock import Clock
from pulse.program.kernels.attention import BandAttentionRow, scratch_size
from pulse.support.bounds import UNBOUNDED
from tests.failed_cases import in_one_test
from tests.noise import next_noise
from tests.pulse.program.kernels.rows import run_both


def masked_bias(rng: np.random.Generator, *shape: int) -> np.ndarray:
    bias = next_noise(rng, *shape)
    return np.where(rng.random(shape) < 0.3, np.float32(-np.inf), bias)


def assert_agrees_with_the_op(
    depth: int,
    width: int,
    band: int,
    back: int,
    period: int,
    number: int,
    end: int,
    empty: float,
    heads: int = 1,
    left_out: int = 0,
) -> None:
    """Run two groups whose rows have gaps between them; frames that no row may read are NaN.

    left_out  the last frames of the band of the last row that the keys do not have
    """
    pulse, offset = 3, 2
    rng = np.random.default_rng([pulse, depth, width, band])
    op = BandedAttention(0.4, masked_bias(rng, 2, heads, period, band), back, empty)
    span = pulse + band - 1 - left_out
    q = next_noise(rng, 2, pulse, heads * depth + 1)
    k = next_noise(rng, 2, span, heads * depth + 3)
    v = next_noise(rng, 2, span, heads * width + 2)
    frames = np.arange(span) + number * pulse - offset - back
    outside = (frames < 0) | (frames >= end)
    k[:, outside], v[:, outside] = np.nan, np.nan
    symbol = SymbolScope().symbol("T")
    stream = BandedAttentionStream(op, offset, TDim.of(symbol))
    clock = Clock(symbol, number, None if end == UNBOUNDED else end)
    (expected,) = stream.step(
        [by_head(q, heads, depth), by_head(k, heads, depth), by_head(v, heads, width)], [], clock
    )
    y = np.full((2, pulse, heads * width + 1), 7, np.float32)
    bias = np.ascontiguousarray(np.moveaxis(op.bias, 1, -1))
    row = BandAttentionRow(
        q=q,
        k=k,
        v=v,
        bias=bias,
        y=y,
        scratch=np.zeros(scratch_size(2, heads, band), np.float32),
        clock=np.array([number, 0]),
        end=np.array([end]),
        M=2,
        at_q=np.array([0, q[0].size]),
        at_k=np.array([0, k[0].size]),
        at_v=np.array([0, v[0].size]),
        at_bias=np.array([0, bias[0].size]),
        at_y=np.array([0, y[0].size]),
        P=pulse,
        step_q=q.shape[2],
        step_k=k.shape[2],
        step_v=v.shape[2],
        step_y=y.shape[2],
        heads=heads,
        depth=depth,
        width=width,
        W=band,
        back=back,
        span=span,
        C=period,
        offset=offset,
        scale=0.4,
        empty=empty,
    )
    for results in run_both(row):
        np.testing.assert_allclose(by_head(results["y"], heads, width), expected, 1e-5, 1e-6)
        assert (results["y"][..., heads * width] == 7).all()


def by_head(x: np.ndarray, heads: int, channels: int) -> np.ndarray:
    """[groups, frames, heads * channels and more] to [groups, heads, frames, channels]."""
    parts = x[..., : heads * channels].reshape(*x.shape[:2], heads, channels)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3))


@pytest.mark.parametrize("depth", [1, 4, 16, 40])
@in_one_test("width", [1, 16, 21, 64, 90])
@pytest.mark.parametrize("band", [1, 3, 16, 21])
def test_all_sizes_agree_with_numpy(depth: int, width: int, band: int) -> None:
    assert_agrees_with_the_op(depth, width, band, band // 2, 1, 30, UNBOUNDED, np.nan)


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("band", [1, 3, 4, 8, 21])
@pytest.mark.parametrize("end", [31, UNBOUNDED])
def test_heads_that_share_a_vector_agree_with_numpy(heads: int, band: int, end: int) -> None:
    channels = LANES // heads
    assert_agrees_with_the_op(channels, channels, band, band // 2, 2, 10, end, np.nan, heads)


@pytest.mark.parametrize("number", [0, 1, 2, 5])
@in_one_test("back", [-1, 0, 4, 7])
@pytest.mark.parametrize("empty", [0.0, np.nan])
@in_one_test("end", [0, 1, 13, 17, UNBOUNDED])
def test_frames_outside_of_the_stream_are_not_read(number: int, back: int, empty: float, end: int) -> None:
    assert_agrees_with_the_op(5, 6, 6, back, 2, number, end, empty)
    assert_agrees_with_the_op(4, 4, 6, back, 2, number, end, empty, heads=4)


@pytest.mark.parametrize("number", [0, 5])
@pytest.mark.parametrize("left_out", [1, 2, 4])
@pytest.mark.parametrize("end", [1, 17, UNBOUNDED])
def test_frames_after_the_keys_are_not_read(number: int, left_out: int, end: int) -> None:
    assert_agrees_with_the_op(5, 6, 6, 1, 2, number, end, np.nan, left_out=left_out)
    assert_agrees_with_the_op(4, 4, 6, 1, 2, number, end, np.nan, heads=4, left_out=left_out)


START = np.zeros(1, np.int64)
ONE_GROUP: Mapping[str, Any] = {
    "M": 1,
    **{f"at_{name}": START for name in ("q", "k", "v", "bias", "y")},
    "P": 1,
    "C": 1,
    "offset": 0,
    "end": np.array([UNBOUNDED]),
}
"""The fields of a row of one group and one frame of a stream without an end."""


def test_large_scores_do_not_overflow() -> None:
    """The largest score is subtracted before the exponential."""
    q, v = np.full((1, 4), 100, np.float32), np.arange(6, dtype=np.float32)[:, None]
    k = np.arange(24, dtype=np.float32).reshape(6, 4)
    row = BandAttentionRow(
        q=q,
        k=k,
        v=v,
        bias=np.zeros(6, np.float32),
        y=np.zeros(1, np.float32),
        scratch=np.zeros(6, np.float32),
        clock=np.array([5]),
        **ONE_GROUP,
        step_q=4,
        step_k=4,
        step_v=1,
        step_y=1,
        heads=1,
        depth=4,
        width=1,
        W=6,
        back=5,
        span=6,
        scale=1.0,
        empty=0.0,
    )
    for results in run_both(row):
        assert results["y"].tolist() == [5.0]


def test_a_head_without_columns_does_not_change_the_other() -> None:
    """The head without columns becomes ``empty``; the head beside it, with much larger scores, does not change it."""
    x = np.ones((1, 16), np.float32)
    k, v = np.repeat([[1.0] * 8 + [1e4] * 8], 5, axis=0), np.arange(80).reshape(5, 16)
    bias = np.zeros((5, 2))
    bias[:, 0] = -np.inf
    row = BandAttentionRow(
        q=x,
        k=k.astype(np.float32),
        v=v.astype(np.float32),
        bias=bias.astype(np.float32),
        y=np.zeros((1, 16), np.float32),
        scratch=np.zeros(10 + LANES, np.float32),
        clock=np.array([4]),
        **ONE_GROUP,
        step_q=16,
        step_k=16,
        step_v=16,
        step_y=16,
        heads=2,
        depth=8,
        width=8,
        W=5,
        back=4,
        span=5,
        scale=1.0,
        empty=-3.0,
    )
    for results in run_both(row):
        assert (results["y"][0, :8] == -3).all()
        np.testing.assert_allclose(results["y"][0, 8:], v[:, 8:].mean(axis=0), 1e-6)
