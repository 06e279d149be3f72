"""Stacked and spliced frames and slopes, against loops over frames."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.front import deltas, splice, stack
from tests.noise import normal_noise
from tests.pulse.front import references
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline


def features(frames: int, bins: int = 5, seed: int = 0) -> Array:
    return normal_noise(1, frames, bins, seed=seed)


def lfr(x: Array, m: int, n: int) -> Array:
    """``apply_lfr`` of FunASR, of one recording [frames, bins]."""
    x = np.concatenate([np.repeat(x[:1], (m - 1) // 2, 0), x])
    rows: list[Array] = []
    for i in range(-(-(len(x) - (m - 1) // 2) // n)):
        row = x[i * n : i * n + m]
        rows.append(np.concatenate([row, np.repeat(x[-1:], m - len(row), 0)]).ravel())
    return np.stack(rows)


@pytest.mark.parametrize(("m", "n"), [(7, 6), (5, 1), (4, 3), (1, 2), (3, 3), (2, 5)])
def test_stack_joins_frames(m: int, n: int) -> None:
    several = [features(frames) for frames in (1, 6, 7, 40)]
    model = stack(m, n, shape="1,frames,5")
    for x in several:
        assert_near(offline(model, x), lfr(x[0], m, n)[None])
    assert_streams_agree(model, several)


@pytest.mark.parametrize("ends", ["zeros", "none"])
def test_stack_pads_its_ends_with_zeros_or_not_at_all(ends: str) -> None:
    x = features(40)
    padded = np.pad(x[0], ((3, 3), (0, 0))) if ends == "zeros" else x[0]
    rows = [padded[start : start + 7].ravel() for start in range(0, len(padded) - 6, 6)]
    model = stack(ends=ends, shape="1,frames,5")
    assert_near(offline(model, x), np.array(rows)[None])
    assert assert_streams_agree(model, x, (1,)) == {"features": {"zeros": 0, "none": 1}[ends]}


@pytest.mark.parametrize(("left", "right"), [(4, 4), (0, 2), (3, 0), (0, 0)])
@pytest.mark.parametrize("ends", ["edge", "zeros"])
def test_splice_joins_neighbours(left: int, right: int, ends: str) -> None:
    x = features(23)
    padded = np.pad(x[0], ((left, right), (0, 0)), mode="edge" if ends == "edge" else "constant")
    expected = np.array([padded[start : start + left + 1 + right].ravel() for start in range(23)])[None]
    model = splice(left, right, ends=ends, shape="1,frames,5")
    assert_near(offline(model, x), expected)
    assert assert_streams_agree(model, x)["features"] == right


def test_splices_agree_with_those_of_kaldi() -> None:
    knf = references.kaldi_native_fbank()
    x = features(23)
    options = knf.SpliceOptions()
    options.left_context, options.right_context = 3, 2
    assert_near(
        offline(splice(3, 2, shape="1,frames,5"), x), np.array(knf.splice_frames(x[0], options))[None]
    )


def slopes(x: Array, order: int, window: int, nested: bool) -> list[Array]:
    """The result for one recording, frame by frame."""
    orders, norm = [x.astype(np.float64)], 2 * sum(j * j for j in range(1, window + 1))
    taps = np.ones(1)
    for _ in range(order):
        taps = np.convolve(taps, np.arange(-window, window + 1) / norm)
        source, factors = (orders[-1], np.arange(-window, window + 1) / norm) if nested else (orders[0], taps)
        reach = len(factors) // 2
        rows = [
            sum(factors[j + reach] * source[min(max(t + j, 0), len(x) - 1)] for j in range(-reach, reach + 1))
            for t in range(len(x))
        ]
        orders.append(np.array(rows))
    return orders


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize(("order", "window"), [(1, 2), (2, 2), (2, 1), (3, 3)])
@pytest.mark.parametrize("keep", [True, False])
def test_deltas_agree_with_their_formula(nested: bool, order: int, window: int, keep: bool) -> None:
    several = [features(frames) for frames in (1, 3, 30)]
    model = deltas(order, window, nested=nested, keep=keep, shape="1,frames,5")
    for x in several:
        orders = slopes(x[0], order, window, nested)
        assert_near(offline(model, x), np.concatenate(orders if keep else orders[1:], 1)[None])
    assert assert_streams_agree(model, several)["features"] == order * window


def test_torchaudio_and_kaldi_agree() -> None:
    knf = references.kaldi_native_fbank()
    x = features(30)
    assert_near(
        offline(deltas(shape="1,frames,5"), x), np.array(knf.compute_deltas(knf.DeltaOptions(), x[0]))[None]
    )
    torch, functional = references.torch(), references.torchaudio().functional
    once = functional.compute_deltas(torch.tensor(x).swapaxes(1, 2), 5)
    twice = functional.compute_deltas(once, 5)
    expected = torch.cat([once, twice], 1).swapaxes(1, 2).numpy()
    assert_near(offline(deltas(nested=True, keep=False, shape="1,frames,5"), x), expected)


def test_verify_proves_stack_and_deltas() -> None:
    pulse.verify(stack(shape="1,frames,4"), pulse=6).require()
    pulse.verify(deltas(shape="1,frames,4"), pulse=2).require()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(stack, 0), "stack: m=0 must be an integer from 1"),
        (partial(stack, ends="mirror"), "ends='mirror' must be one of 'edge', 'zeros', 'none'"),
        (partial(stack, shape="1,frames"), "must have 3 axes, such as '1,frames,80'"),
        (partial(stack, shape="1,80,frames"), "the bins, axis 2 of '1,80,frames', must be a number"),
        (partial(splice, -1), "left=-1 must be an integer from 0"),
        (partial(splice, ends="none"), "ends='none' must be one of 'edge', 'zeros'"),
        (partial(deltas, 0), "order=0 must be an integer from 1 to 8"),
        (partial(deltas, nested=1), "nested=1 must be True or False"),
    ],
)
def test_stack_and_deltas_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)
