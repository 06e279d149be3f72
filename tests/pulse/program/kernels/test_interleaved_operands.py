"""Kernels of sixteen streams: products of operands, reductions, softmax, gates, transforms, LSTMs."""

from typing import Any

import numpy as np
import pytest

from pulse.jit.language.simd import LANES
from pulse.ops.spectral import dft_matrix
from pulse.program.kernels.matmul.batches import MatmulRow
from pulse.program.kernels.matmul.batches_interleaved import InterleavedMatmulRow
from pulse.program.kernels.matmul.epilogue import GATES, Epilogue, GateEpilogue
from pulse.program.kernels.norm import SoftmaxRow
from pulse.program.kernels.norm_interleaved import InterleavedSoftmaxRow
from pulse.program.kernels.recurrent.gates import pack_gates
from pulse.program.kernels.recurrent.lstm import LstmRow
from pulse.program.kernels.recurrent.lstm_interleaved import InterleavedLstmRow, four_gates_by_unit
from pulse.program.kernels.reduce import MAX, MIN, PROD, SUM, ReduceRow
from pulse.program.kernels.reduce_interleaved import InterleavedReduceRow
from pulse.program.kernels.spectral import FourierRow, count_scratch
from pulse.program.kernels.spectral_interleaved import InterleavedFourierRow, angles_last
from pulse.program.lower.spectral import are_pairs, find_contiguous
from pulse.program.spectral_basis import dft_tables, find_dft_basis
from pulse.support.bounds import UNBOUNDED
from tests.noise import next_noise
from tests.pulse.program.dft_matrices import arrange_parts
from tests.pulse.program.kernels.groups import activation, epilogue_of
from tests.pulse.program.kernels.interleaved_rows import (
    Array,
    compare_products,
    compare_rows,
    interleave,
)
from tests.pulse.program.kernels.rows import run_both


@pytest.mark.parametrize(("B", "M", "K", "N"), [(1, 1, 1, 1), (2, 5, 3, 6), (1, 4, 8, 4), (3, 2, 9, 7)])
@pytest.mark.parametrize("transposed", [False, True])
def test_interleaved_products_agree_with_single_streams(
    rng: np.random.Generator, B: int, M: int, K: int, N: int, transposed: bool
) -> None:
    sizes = {"a": M * K, "b": K * N, "y": M * N}
    arrays = {name: next_noise(rng, LANES, B * size) for name, size in sizes.items()}
    strides = [1, M, 1, K, N, 1] if transposed else [K, 1, N, 1, 1, M]
    common: dict[str, Any] = {
        "B": B,
        **{f"batch_{name}": rng.permutation(B) * size for name, size in sizes.items()},
        "M": M,
        "K": K,
        "N": N,
        **dict(zip(("am", "ak", "bk", "bn", "ym", "yn"), strides)),
        "scale": 0.75,
    }
    singles = [
        MatmulRow(**common, **{name: array[i] for name, array in arrays.items()}) for i in range(LANES)
    ]
    several = InterleavedMatmulRow(**common, **{name: interleave(array) for name, array in arrays.items()})
    compare_rows(singles, several, "y")


@pytest.mark.parametrize("kind", [SUM, MAX, MIN, PROD], ids=["sum", "max", "min", "prod"])
@pytest.mark.parametrize(("M", "R", "stride"), [(1, 1, 1), (3, 9, 1), (2, 4, 3), (2, 0, 1)])
def test_reductions_of_sixteen_streams_agree_with_single_ones(
    rng: np.random.Generator, kind: int, M: int, R: int, stride: int
) -> None:
    rows = rng.permutation(M) * (R * stride + 1)
    x, y = next_noise(rng, LANES, M * (R * stride + 1)), next_noise(rng, LANES, 2 * M)
    common: dict[str, Any] = {
        "M": M,
        "rows_x": rows,
        "rows_y": rng.permutation(M) * 2,
        "R": R,
        "stride": stride,
        "kind": kind,
        "scale": 0.5,
    }
    singles = [ReduceRow(**common, x=x[i], y=y[i]) for i in range(LANES)]
    compare_rows(singles, InterleavedReduceRow(**common, x=interleave(x), y=interleave(y)), "y")


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize(("M", "R"), [(1, 1), (2, 5), (3, 35), (2, 0)])
def test_softmax_of_sixteen_streams_agrees_with_single_ones(
    rng: np.random.Generator, M: int, R: int, log: int
) -> None:
    rows = rng.permutation(M) * (R + 1)
    x, y = next_noise(rng, LANES, M * (R + 1)) * np.float32(5), next_noise(rng, LANES, M * (R + 1))
    x[:, 0] = -np.inf if R > 1 else 1
    common: dict[str, Any] = {"M": M, "rows_x": rows, "rows_y": rows[::-1].copy(), "R": R, "log": log}
    singles = [SoftmaxRow(**common, x=x[i], y=y[i]) for i in range(LANES)]
    compare_rows(singles, InterleavedSoftmaxRow(**common, x=interleave(x), y=interleave(y)), "y")


@pytest.mark.parametrize(("left", "right"), [("tanh", "sigmoid"), (None, "sigmoid"), ("sigmoid", None)])
def test_gates_of_sixteen_streams_agree_with_single_ones(
    rng: np.random.Generator, left: str | None, right: str | None
) -> None:
    M, K, N = 3, 5, 6
    x, y, gated = (
        next_noise(rng, LANES, M * K),
        next_noise(rng, LANES, M * N),
        next_noise(rng, LANES, M * (N // 2 + 1)),
    )
    rows_gated = rng.permutation(M) * (N // 2 + 1)

    def epilogue(output: Array) -> Epilogue:
        gate = GateEpilogue(left=GATES.index(left), right=GATES.index(right), gated=output, rows=rows_gated)
        return epilogue_of(gates=[gate])

    common: dict[str, Any] = {
        "M": M,
        "rows_x": rng.permutation(M) * K,
        "rows_y": np.arange(M) * N,
        "T": 1,
        "taps": np.array([0]),
        "K": K,
        "N": N,
        "accumulate": False,
    }
    compare_products(rng, common, x, y, next_noise(rng, K, N), epilogue, gated, "epilogue.gates[0].gated")


@pytest.mark.parametrize(
    ("length", "parts", "one_sided"), [(64, 1, True), (96, 2, False), (100, 1, True), (80, 2, False)]
)
@pytest.mark.parametrize("wants_im", [1, 0])
def test_transforms_of_sixteen_streams_agree_with_single_ones(
    rng: np.random.Generator, length: int, parts: int, one_sided: bool, wants_im: int
) -> None:
    bins = length // 2 + 1 if one_sided else length
    dft = find_dft_basis(arrange_parts(dft_matrix(length, parts, length, bins, False), "turns", "turns"))
    assert dft is not None
    assert dft.bins.im is not None
    first, second, w1, twiddles, w2 = dft_tables(dft)
    points, kept_bins, M = dft.points, dft.bins, 2
    reach, width = parts * length, 2 * bins
    from_im = np.zeros(1, np.int64) if points.im is None else points.im
    common: dict[str, Any] = {
        "M": M,
        "rows_x": rng.permutation(M) * reach,
        "rows_y": rng.permutation(M) * width,
        "R": points.count,
        "N1": first,
        "N2": second,
        "w2": w2,
        "from_re": points.re,
        "from_im": from_im,
        "scales": points.factors.astype(np.float32),
        "K": kept_bins.count,
        "to_re": kept_bins.re,
        "to_im": dft.bins.im,
        "factors": kept_bins.factors.astype(np.float32),
        "has_im": points.im is not None,
        "wants_im": wants_im,
        "columns": width,
        "epilogue": epilogue_of(),
    }
    x, y = next_noise(rng, LANES, M * reach), next_noise(rng, LANES, M * width)
    scratch = np.zeros((LANES, count_scratch(first, second)), np.float32)
    singles = [
        FourierRow(
            **common,
            x=x[i],
            y=y[i],
            scratch=scratch[i],
            P=w1.shape[2],
            w1=w1,
            twiddles=twiddles,
            **find_contiguous((points.re, points.im), points.factors, (kept_bins.re, dft.bins.im)),
            from_pairs=are_pairs(points.re, points.im),
            to_pairs=wants_im and are_pairs(kept_bins.re, dft.bins.im),
        )
        for i in range(LANES)
    ]
    several = InterleavedFourierRow(
        **common,
        x=interleave(x),
        y=interleave(y),
        scratch=interleave(scratch),
        w1=angles_last(w1, first),
        twiddles=angles_last(twiddles, first),
    )
    compare_rows(singles, several, "y")


@pytest.mark.parametrize(("T", "B", "H"), [(1, 1, 1), (1, 3, 5), (4, 1, 16), (3, 2, 21), (0, 1, 4)])
@pytest.mark.parametrize(("clip", "couples"), [(0.0, 0), (0.5, 0), (0.0, 1)])
def test_lstm_layers_of_sixteen_streams_agree_with_single_ones(
    rng: np.random.Generator, T: int, B: int, H: int, clip: float, couples: int
) -> None:
    packed = pack_gates(next_noise(rng, 4 * H, H) * np.float32(0.5 * H**-0.5), H)
    peepholes, frames = next_noise(rng, 3, H), max(1, T) * B
    y, h, c = next_noise(rng, LANES, frames * H), next_noise(rng, LANES, B * H), next_noise(rng, LANES, B * H)
    x = next_noise(rng, LANES, frames * 4 * H)
    common: dict[str, Any] = {
        "T": T,
        "B": B,
        "H": H,
        "step_frame": B * H,
        "step_row": H,
        "couples": couples,
        "clip": clip,
        "peepholes": peepholes,
        "f": activation("sigmoid"),
        "g": activation("tanh"),
        "out": activation("tanh"),
    }
    singles = [
        LstmRow(
            **common,
            y=y[i],
            h=h[i],
            c=c[i],
            x=x[i],
            W=packed,
            scales=None,
            h0=np.zeros(1, np.float32),
            step_h0_row=0,
            c0=np.zeros(1, np.float32),
            step_c0_row=0,
            clock=np.array([5]),
            end=np.array([UNBOUNDED]),
            offset=0,
            reload=False,
            reverse=False,
        )
        for i in range(LANES)
    ]
    several = InterleavedLstmRow(
        **common,
        y=interleave(y),
        h=interleave(h),
        c=interleave(c),
        x=interleave(x),
        W=four_gates_by_unit(packed, H),
    )
    compare_rows(singles, several, "y", "h", "c")


def test_infinities_and_nan_stay_in_their_streams(rng: np.random.Generator) -> None:
    x = next_noise(rng, LANES, 6)
    x[3, 2], x[5, 1] = np.nan, np.inf
    rows = np.zeros(1, np.int64)
    row = InterleavedSoftmaxRow(
        x=interleave(x), y=np.zeros((6, LANES), np.float32), M=1, rows_x=rows, rows_y=rows, R=6, log=False
    )
    for after in run_both(row):
        assert np.isnan(after["y"].T).all(axis=1).tolist() == [number in (3, 5) for number in range(LANES)]
