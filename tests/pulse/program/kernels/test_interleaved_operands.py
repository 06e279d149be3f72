"""Kernels of sixteen streams: products of operands, reductions, softmax, gates, transforms, LSTMs."""

from typing import Any

import numpy as np
import pytest

from pulse.jit.language.simd import LANES
from pulse.jit.rows.pointer import real_bits
from pulse.ops.spectral import dft_matrix
from pulse.program.dft_basis import find_dft_basis, tables
from pulse.program.kernels.matmul import matmul
from pulse.program.kernels.matmul_finish import GATES
from pulse.program.kernels.matmul_interleaved import COLUMNS, interleaved_product, interleaved_weights
from pulse.program.kernels.matmul_interleaved_batches import interleaved_matmul
from pulse.program.kernels.matmul_product import product
from pulse.program.kernels.matmul_product_blocks import pack_product
from pulse.program.kernels.norm import softmax_rows
from pulse.program.kernels.norm_interleaved import interleaved_softmax
from pulse.program.kernels.recurrent_gates import ACTIVATIONS, pack_gates
from pulse.program.kernels.recurrent_interleaved_lstm import four_gates_by_unit, interleaved_lstm
from pulse.program.kernels.recurrent_lstm import lstm
from pulse.program.kernels.reduce import MAX, MIN, PROD, SUM, reduce_rows
from pulse.program.kernels.reduce_interleaved import interleaved_reduce_rows
from pulse.program.kernels.spectral import fourier
from pulse.program.kernels.spectral_interleaved import angles_last, interleaved_fourier
from pulse.program.lower.matmul_product import neighbours_from
from pulse.support.bounds import FAR
from tests.pulse.program.dft_matrices import arrange_parts
from tests.pulse.program.kernels.interleaved_rows import RNG, compare_rows, floats, same
from tests.pulse.program.kernels.positional_rows import At, run_both


@pytest.mark.parametrize(("B", "M", "K", "N"), [(1, 1, 1, 1), (2, 5, 3, 6), (1, 4, 8, 4), (3, 2, 9, 7)])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_operands(B: int, M: int, K: int, N: int, transposed: bool) -> None:
    batches = {n + 3: same(RNG.permutation(B) * size) for n, size in enumerate((M * K, K * N, M * N))}
    own = {n: floats(LANES, B * size) for n, size in enumerate((M * K, K * N, M * N))}
    steps = [1, M, 1, K, N, 1] if transposed else [K, 1, N, 1, 1, M]
    args = [At(0), At(1), At(2), B, At(3), At(4), At(5), M, K, N, *steps, real_bits(0.75)]
    compare_rows(matmul, interleaved_matmul, batches, own, args, args, [2])


@pytest.mark.parametrize("kind", [SUM, MAX, MIN, PROD])
@pytest.mark.parametrize(("M", "R", "stride"), [(1, 1, 1), (3, 9, 1), (2, 4, 3), (2, 0, 1)])
def test_reductions_of_sixteen_streams_agree_with_single_ones(kind: int, M: int, R: int, stride: int) -> None:
    rows = RNG.permutation(M) * (R * stride + 1)
    own = {0: floats(LANES, M * (R * stride + 1)), 1: floats(LANES, 2 * M)}
    args = [At(0), At(1), M, At(2), At(3), R, stride, kind, real_bits(0.5)]
    shared = {2: same(rows), 3: same(RNG.permutation(M) * 2)}
    compare_rows(reduce_rows, interleaved_reduce_rows, shared, own, args, args, [1])


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize(("M", "R"), [(1, 1), (2, 5), (3, 35), (2, 0)])
def test_softmax_of_sixteen_streams_agrees_with_single_ones(M: int, R: int, log: int) -> None:
    rows = RNG.permutation(M) * (R + 1)
    own = {0: floats(LANES, M * (R + 1)) * np.float32(5), 1: floats(LANES, M * (R + 1))}
    own[0][:, 0] = -np.inf if R > 1 else 1
    args = [At(0), At(1), M, At(2), At(3), R, log]
    compare_rows(
        softmax_rows, interleaved_softmax, {2: same(rows), 3: same(rows[::-1].copy())}, own, args, args, [1]
    )


@pytest.mark.parametrize(("left", "right"), [("tanh", "sigmoid"), (None, "sigmoid"), ("sigmoid", None)])
def test_gates_after_a_product(left: str | None, right: str | None) -> None:
    M, K, N = 3, 5, 6
    matrix, bias = floats(K, N), floats(N)
    packed, padded = pack_product(matrix), np.zeros(-(-N // COLUMNS) * COLUMNS, np.float32)
    padded[:N] = bias
    shared = {
        1: (packed, interleaved_weights(packed, K, N)),
        2: (bias, padded),
        4: same(RNG.permutation(M) * K),
        5: same(np.arange(M) * N),
        6: same(np.array([0])),
        8: same(RNG.permutation(M) * (N // 2 + 1)),
    }
    own = {
        0: floats(LANES, M * K),
        3: floats(LANES, M * N),
        7: floats(LANES, M * (N // 2 + 1)),
    }
    begin = [At(0), At(3), M, At(4), At(5), 1, At(6), K, N, 0, At(1), At(2)]
    gate = [0, 1, 0, GATES.index(left), GATES.index(right), At(7), At(8)]
    compare_rows(product, interleaved_product, shared, own, [*begin, 0, *gate], [*begin, *gate], [7])


@pytest.mark.parametrize(
    ("length", "parts", "one_sided"), [(64, 1, True), (96, 2, False), (100, 1, True), (80, 2, False)]
)
@pytest.mark.parametrize("wants_im", [1, 0])
def test_transforms_of_sixteen_streams_agree_with_single_ones(
    length: int, parts: int, one_sided: bool, wants_im: int
) -> None:
    bins = length // 2 + 1 if one_sided else length
    dft = find_dft_basis(arrange_parts(dft_matrix(length, parts, length, bins, False), "turns", "turns"))
    assert dft is not None and dft.bins.im is not None
    first, second, w1, twiddles, w2 = tables(dft)
    points, kept_bins, M = dft.points, dft.bins, 2
    none, reach, width, to_im = np.zeros(1, np.int64), parts * length, 2 * bins, dft.bins.im
    has_im = int(points.im is not None)
    from_im = none if points.im is None else points.im
    shared = {
        3: same(RNG.permutation(M) * reach),
        4: same(RNG.permutation(M) * width),
        5: (w1, angles_last(w1, first)),
        6: (twiddles, angles_last(twiddles, first)),
        7: same(w2),
        8: same(points.re),
        9: same(from_im),
        10: same(points.factors.astype(np.float32)),
        11: same(kept_bins.re),
        12: same(to_im),
        13: same(kept_bins.factors.astype(np.float32)),
    }
    own = {
        0: floats(LANES, M * reach),
        1: floats(LANES, M * width),
        2: np.zeros((LANES, 2 * length + 2 * twiddles.size), np.float32),
    }
    near = [
        neighbours_from(table, scales) for table, scales in zip((points.re, from_im), points.factors[[0, -1]])
    ]
    next_to = [int(neighbours_from(table, np.ones(1)) == 0) for table in (kept_bins.re, to_im)]
    rows = [At(0), At(1), At(2), M, At(3), At(4), points.count, first, second]
    places = [At(8), At(9), At(10), kept_bins.count, At(11), At(12), At(13), has_im, wants_im]
    end = [width, 0, 0, 0]
    args = [*rows, w1.shape[2], At(5), At(6), At(7), *places, *near, *next_to, *end]
    other = [*rows, At(5), At(6), At(7), *places, *end]
    compare_rows(fourier, interleaved_fourier, shared, own, args, other, [1])


NAMES = ("sigmoid", "tanh", "tanh")
WORDS: list[Any] = [word for name in NAMES for word in (ACTIVATIONS[name], real_bits(0.0), real_bits(0.0))]


@pytest.mark.parametrize(("T", "B", "H"), [(1, 1, 1), (1, 3, 5), (4, 1, 16), (3, 2, 21), (0, 1, 4)])
@pytest.mark.parametrize(("clip", "couples"), [(0.0, 0), (0.5, 0), (0.0, 1)])
def test_lstm_layers(T: int, B: int, H: int, clip: float, couples: int) -> None:
    packed = pack_gates(floats(4 * H, H) * np.float32(0.5 * H**-0.5), H)
    shared = {
        2: same(floats(B, H)),
        3: same(np.array([5, 0])),
        4: same(np.array([FAR])),
        6: (packed, four_gates_by_unit(packed, H)),
        7: same(floats(3, H)),
    }
    own = {0: floats(LANES, max(1, T) * B * H), 1: floats(LANES, B * H), 8: floats(LANES, B * H)}
    own[5] = floats(LANES, max(1, T) * B * 4 * H)
    frames = [At(0), At(1), At(2), At(3), At(4), 0, T, B, H, H, B * H, H, 0, real_bits(clip)]
    args = [*frames, At(5), At(6), 0, *WORDS, At(8), At(2), H, At(7), couples]
    other = [At(0), At(1), At(8), At(5), At(6), At(7), T, B, H, B * H, H, couples, real_bits(clip), *WORDS]
    compare_rows(lstm, interleaved_lstm, shared, own, args, other, [0, 1, 8])


def test_infinities_stay_in_their_streams() -> None:
    x = floats(LANES, 6)
    x[3, 2], x[5, 1] = np.nan, np.inf
    args = [At(0), At(1), 1, At(2), At(2), 6, 0]
    for after in run_both(
        interleaved_softmax, [x.T.copy(), np.zeros((6, LANES), np.float32), np.zeros(1, np.int64)], *args
    ):
        assert np.isnan(after[1].T).all(axis=1).tolist() == [number in (3, 5) for number in range(LANES)]
