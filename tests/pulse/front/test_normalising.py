"""Fixed and sliding normalisation, against loops in f64; files of statistics."""

import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import InputError
from pulse.facts import Array
from pulse.front import cmvn, sliding_cmvn
from tests.pulse.front import references
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline
from tests.shared import shared_path


def features(frames: int, bins: int = 5, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((1, frames, bins)) * 2 + rng.uniform(-3, 9, bins)).astype(np.float32)


def sums_of(x: Array) -> Array:
    """Kaldi's statistics of [frames, bins]."""
    wide = x.astype(np.float64)
    return np.stack([np.append(wide.sum(0), len(wide)), np.append((wide**2).sum(0), 0)])


def binary(matrix: Array, kind: str = "DM ", key: str = "") -> bytes:
    dtype = {"DM ": "<f8", "FM ": "<f4"}[kind]
    head = key.encode() + b"\0B" + kind.encode()
    sizes = b"".join(b"\4" + struct.pack("<i", size) for size in matrix.shape)
    return head + sizes + matrix.astype(dtype).tobytes()


def text(matrix: Array) -> bytes:
    rows = "\n".join("  " + " ".join(repr(float(value)) for value in row) for row in matrix)
    return f"global  [\n{rows} ]\n".encode()


def am_mvn(mean: Array, scale: Array) -> bytes:
    def vector(values: Array) -> str:
        return "[ " + " ".join(repr(float(value)) for value in values) + " ]"

    n = len(mean)
    return (
        f"<Nnet>\n<Splice> {n} {n}\n[ 0 ]\n<AddShift> {n} {n}\n<LearnRateCoef> 0 {vector(-mean)}\n"
        f"<Rescale> {n} {n}\n<LearnRateCoef> 0 {vector(scale)}\n</Nnet>\n"
    ).encode()


FILES = {
    "binary": lambda x: binary(sums_of(x)),
    "single": lambda x: binary(sums_of(x), "FM "),
    "archive": lambda x: binary(sums_of(x), key="speaker_1 "),
    "text": lambda x: text(sums_of(x)),
    "funasr": lambda x: am_mvn(x.astype(np.float64).mean(0), 1 / x.astype(np.float64).std(0)),
}


@pytest.mark.parametrize("form", list(FILES))
@pytest.mark.parametrize("norm_vars", [True, False])
def test_statistics_of_files_are_read(form: str, norm_vars: bool, tmp_path: Path) -> None:
    x = features(200)
    path = tmp_path / "statistics"
    path.write_bytes(FILES[form](x[0]))
    wide = x[0].astype(np.float64)
    expected = (wide - wide.mean(0)) / (wide.std(0) if norm_vars else 1)
    for statistics in (path, str(path)):
        model = cmvn(statistics, norm_vars=norm_vars, shape="1,frames,5")
        assert_near(offline(model, x), expected[None])
    assert_streams_agree(model, x)


def test_sums_without_squares_give_the_mean_alone(tmp_path: Path) -> None:
    x = features(50)
    path = tmp_path / "sums"
    path.write_bytes(text(sums_of(x[0])[:1]))
    assert_near(offline(cmvn(path, shape="1,frames,5"), x), x - x.astype(np.float64).mean(1, keepdims=True))


def test_given_statistics_are_applied() -> None:
    x = features(30)
    mean, std = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 0.5, 3.0, 4.0]
    assert_near(
        offline(cmvn(mean=mean, std=std, shape="1,frames,5"), x), (x - np.array(mean)) / np.array(std)
    )
    assert_near(offline(cmvn(std=2.0, shape="1,frames,5"), x), x / 2)
    turned = x.swapaxes(1, 2).copy()
    model = cmvn(mean=mean, axis=1, shape="1,5,T")
    assert_near(offline(model, turned), turned - np.array(mean)[:, None])
    assert_streams_agree(model, turned)


def test_cmvn_normalises_as_a_published_model() -> None:
    case = np.load(shared_path("sound/fireredvad_en.npz"))
    model = cmvn(str(shared_path("sound/cmvn.ark")))
    expected = (case["fbank"].astype(np.float64) - case["cmvn_mean"]) * case["cmvn_istd"]
    assert_near(offline(model, case["fbank"][None].astype(np.float32)), expected[None])


def sliding_norm(x: Array, window: int, minimum: int, center: bool, norm_vars: bool) -> Array:
    """``SlidingWindowCmnInternal`` of Kaldi, of one recording."""
    wide, rows = x.astype(np.float64), list[Array]()
    for t in range(len(x)):
        start, end = (t - window // 2, t - window // 2 + window) if center else (t - window, t + 1)
        if start < 0:
            start, end = 0, end - start
        if not center and end > t:
            end = max(t + 1, minimum)
        if end > len(x):
            start, end = max(0, start - (end - len(x))), len(x)
        part = wide[start:end]
        row = wide[t] - part.mean(0)
        if norm_vars:
            row = row / np.sqrt(np.maximum((part**2).mean(0) - part.mean(0) ** 2, 1e-10))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(
    ("norm_vars", "window", "minimum"),
    [(norm_vars, *sizes) for norm_vars in (True, False) for sizes in [(30, 10), (8, 8), (60, 37)]]
    + [(False, 9, 1), (True, 9, 2)],  # a variance of one frame is rounding
)
def test_sliding_statistics_agree_with_numpy(
    center: bool, norm_vars: bool, window: int, minimum: int
) -> None:
    several = [features(frames) for frames in (60, 131)]
    model = sliding_cmvn(window, minimum, center=center, norm_vars=norm_vars, shape="1,frames,5")
    for x in several:
        assert_near(offline(model, x), sliding_norm(x[0], window, minimum, center, norm_vars)[None])
    delay = assert_streams_agree(model, several)["features"]
    assert delay == (window if center else minimum) - 1


@pytest.mark.parametrize(("center", "frames"), [(True, 29), (False, 9)])
def test_a_stream_shorter_than_the_window_is_refused(center: bool, frames: int) -> None:
    model = sliding_cmvn(30, 10, center=center, shape="1,frames,5")
    with pytest.raises(InputError, match="frames"):
        model.run(features(frames))


@pytest.mark.parametrize("norm_vars", [True, False])
def test_agrees_with_kaldi(norm_vars: bool, tmp_path: Path) -> None:
    knf = references.kaldi_native_fbank()
    x = features(80)
    sums = np.array(knf.compute_cmvn_stats(x[0]))
    path = tmp_path / "cmvn"
    path.write_bytes(binary(sums))
    options = knf.CmvnOptions()
    options.norm_vars = norm_vars
    expected = np.array(knf.apply_cmvn(sums, options, x[0]))[None]
    assert_near(offline(cmvn(path, norm_vars=norm_vars, shape="1,frames,5"), x), expected)


def test_verify_proves_sliding_cmvn() -> None:
    pulse.verify(sliding_cmvn(20, 5, norm_vars=True, shape="1,frames,4"), pulse=2).require()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(cmvn), "give the path of a file of statistics, or mean and std"),
        (partial(cmvn, "x", mean=1.0), "give a path, or mean and std, not both"),
        (partial(cmvn, "/nowhere"), "cannot be read"),
        (partial(cmvn, mean=[1.0]), "mean must be one finite number, or 80 of them"),
        (partial(cmvn, std=0.0), "std must be above 0 for every bin"),
        (
            partial(cmvn, mean=1.0, file_format="numpy"),
            "file_format='numpy' must be one of 'auto', 'kaldi', 'funasr'",
        ),
        (partial(cmvn, mean=1.0, axis=1), "the bins, axis 1 of '1,frames,80', must be a number"),
        (partial(sliding_cmvn, 10, 11), "min_window=11 must be an integer from 1 to 10"),
        (partial(sliding_cmvn, center=None), "center=None must be True or False"),
    ],
)
def test_cmvn_and_sliding_cmvn_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "no matrix in brackets", id="empty"),
        pytest.param(b"[ 1 2\n 3 ]", "have different lengths", id="ragged rows"),
        pytest.param(b"[ 1 2\n 3 x ]", "'x' is not a number", id="no number"),
        pytest.param(b"[ 1 0\n 3 0 ]", "a count of 0 frames", id="count of 0"),
        pytest.param(b"[ 1 nan\n 3 0 ]", "'nan' is not a number", id="nan"),
        pytest.param(b"[ 1 2 ]\n", "statistics of 1 bin for features of 5", id="too few bins"),
        pytest.param(b"\0BCM \4", "its matrix begins with", id="compressed"),
        pytest.param(binary(np.ones((2, 6)))[:-1], "but is shorter", id="cut short"),
        pytest.param(b"\0BDM \4\xff\xff\xff\xff\4\2\0\0\0", "it announces -1 rows", id="negative rows"),
        pytest.param(binary(np.ones((3, 6))), "instead of 2 rows", id="three rows"),
        pytest.param(b"<AddShift> [ 1 2 ]", "no <Rescale>", id="no scale"),
        pytest.param(
            b"<AddShift> [ 1 2 ] <Rescale> [ 1 ]", "2 shifts and 1 scale", id="fewer scales than shifts"
        ),
        pytest.param(b" " * (1 << 20) + b" ", "has 1048577 bytes; more than statistics have", id="too long"),
    ],
)
def test_broken_files_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_bytes(data)
    assert_refused(partial(cmvn, path, shape="1,frames,5"), message)
