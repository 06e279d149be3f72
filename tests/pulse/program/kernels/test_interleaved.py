"""Kernels of sixteen streams with interleaved memories against those of one stream, as plain Python and compiled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pulse.jit.language.simd import LANES
from pulse.jit.registry import Kernel
from pulse.jit.rows.pointer import real_bits
from pulse.program.kernels.conv_depthwise import depthwise
from pulse.program.kernels.conv_interleaved import interleaved_depthwise
from pulse.program.kernels.matmul_finish import STEPS
from pulse.program.kernels.matmul_interleaved import COLUMNS, interleaved_product, interleaved_weights
from pulse.program.kernels.matmul_product import product
from pulse.program.kernels.matmul_product_blocks import pack_product
from pulse.program.kernels.norm import layernorm_rows
from pulse.program.kernels.norm_interleaved import interleaved_layernorm
from pulse.program.kernels.recurrent_gates import ACTIVATIONS, pack_gates
from pulse.program.kernels.recurrent_gru import gru
from pulse.program.kernels.recurrent_gru_small import gru_eights, gru_fours, pack_small
from pulse.program.kernels.recurrent_interleaved import gates_by_unit, interleaved_gru, small_gates_by_unit
from pulse.support.bounds import FAR
from tests.pulse.program.kernels.interleaved_rows import RNG, Array, compare_rows, floats, same
from tests.pulse.program.kernels.positional_rows import At, run_both, run_row


def tables(M: int, T: int, reach: int, width: int) -> tuple[Array, Array, Array]:
    """Rows of x and y, and taps."""
    return RNG.permutation(M) * 3, RNG.permutation(M) * (width + 2), RNG.permutation(T) * (reach + 1)


STEP_ARGS: Mapping[str, float] = dict.fromkeys(STEPS, 0.3) | {"max": -0.1, "min": 0.2}


@pytest.mark.parametrize("accumulate", [0, 1])
@pytest.mark.parametrize(
    ("M", "T", "K", "N", "steps"),
    [
        (1, 1, 5, 3, ("prelu",)),
        (1, 2, 3, 9, ("add",)),
        (1, 1, 4, 13, ()),
        (2, 1, 7, 8, ("tanh", "mul_round")),
        (3, 3, 2, 6, ("elu", "add")),
        (5, 2, 4, 33, ("swish",)),
        (7, 1, 6, 70, ("relu", "sigmoid")),
        (4, 1, 3, 4, ("leaky_relu", "max", "min")),
        (0, 1, 3, 4, ()),
    ],
)
def test_products_of_sixteen_streams_agree_with_single_ones(
    M: int, T: int, K: int, N: int, steps: tuple[str, ...], accumulate: int
) -> None:
    rows_x, rows_y, taps = tables(M, T, K, N)
    reach = 3 * M + T * (K + 1) + K
    matrix, bias = floats(T * K, N) * np.float32(0.4), floats(N)
    padded = np.zeros(-(-N // COLUMNS) * COLUMNS, np.float32)
    padded[:N] = bias
    packed = pack_product(matrix)
    shared = {
        1: (packed, interleaved_weights(packed, T * K, N)),
        2: (bias, padded),
        4: same(rows_x),
        5: same(rows_y),
        6: same(taps),
        7: same(floats(N)),
    }
    size = max(1, M * (N + 2))
    own = {0: floats(LANES, reach), 3: floats(LANES, size), 8: floats(LANES, size)}
    finish: list[Any] = [0, 0, len(steps)]
    for name in steps:
        operand = At(8) if name == "add" else At(7)
        finish += [STEPS.index(name), real_bits(STEP_ARGS[name]), operand, At(5)]
    begin = [At(0), At(3), M, At(4), At(5), T, At(6), K, N, accumulate, At(1), At(2)]
    compare_rows(product, interleaved_product, shared, own, [*begin, 0, *finish], [*begin, *finish], [3])


@pytest.mark.parametrize("step", [None, "relu", "prelu"])
@pytest.mark.parametrize(("M", "T", "C"), [(0, 2, 3), (1, 1, 1), (4, 9, 16), (5, 3, 17), (9, 5, 8)])
def test_depthwise_windows(M: int, T: int, C: int, step: str | None) -> None:
    rows_x, rows_y, taps = tables(M, T, C, C)
    shared = {1: same(floats(T, C)), 2: same(floats(C)), 4: same(rows_x), 5: same(rows_y), 6: same(taps)}
    own = {0: floats(LANES, 3 * M + T * (C + 1) + C), 3: floats(LANES, max(1, M * (C + 2)))}
    args = [At(0), At(3), M, At(4), At(5), T, At(6), At(1), At(2), C, 0, 0, int(step is not None)]
    if step is not None:
        args += [STEPS.index(step), real_bits(0.0), At(2), At(5)]
    compare_rows(depthwise, interleaved_depthwise, shared, own, args, args, [3])


@pytest.mark.parametrize(("M", "R"), [(1, 1), (2, 5), (1, 16), (3, 35)])
def test_layer_normalisation(M: int, R: int) -> None:
    rows = RNG.permutation(M) * (R + 1)
    shared = {1: same(floats(R)), 2: same(floats(R)), 4: same(rows), 5: same(rows[::-1].copy())}
    own = {0: floats(LANES, M * (R + 1)) + np.float32(3), 3: floats(LANES, M * (R + 1))}
    args = [At(0), At(3), M, At(4), At(5), R, At(1), At(2), real_bits(1e-3)]
    other = [At(0), At(1), At(2), At(3), M, At(4), At(5), R, real_bits(1e-3)]
    compare_rows(layernorm_rows, interleaved_layernorm, shared, own, args, other, [3])


NAMES = ("sigmoid", "tanh")
WORDS = [word for name in NAMES for word in (ACTIVATIONS[name], real_bits(0.0), real_bits(0.0))]


@pytest.mark.parametrize(("T", "B", "H"), [(1, 1, 1), (1, 3, 5), (4, 1, 16), (3, 2, 21)])
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_recurrent_layers(T: int, B: int, H: int, clip: float) -> None:
    packed = pack_gates(floats(3 * H, H) * np.float32(0.5 * H**-0.5), H)
    shared = {
        2: same(floats(B, H)),
        3: same(np.array([5, 0])),
        4: same(np.array([FAR])),
        6: (packed, gates_by_unit(packed, H)),
        7: same(floats(H)),
    }
    own = {0: floats(LANES, T * B * H), 1: floats(LANES, B * H), 5: floats(LANES, T * B * 3 * H)}
    frames = [At(0), At(1), At(2), At(3), At(4), 0, T, B, H, H, B * H, H, 0, real_bits(clip)]
    args = [*frames, At(5), At(6), 0, *WORDS, At(7), 0]
    other = [At(0), At(1), At(5), At(6), At(7), 1, 0, 0, H, T, B, H, B * H, H, real_bits(clip), *WORDS]
    compare_rows(gru, interleaved_gru, shared, own, args, other, [0, 1])


@pytest.mark.parametrize(
    ("kernel", "width", "count", "backwards"),
    [(gru_fours, 4, 1, 0), (gru_fours, 4, 3, 0b010), (gru_fours, 4, 4, 0b1001), (gru_eights, 8, 2, 0b01)],
)
@pytest.mark.parametrize(("T", "B"), [(1, 3), (5, 1), (2, 2)])
def test_small_layers_side_by_side(
    kernel: Kernel, width: int, count: int, backwards: int, T: int, B: int
) -> None:
    packed = pack_small([floats(3 * width, width) * np.float32(0.4) for _ in range(count)], width)
    bias = np.zeros(LANES, np.float32)
    bias[: count * width] = floats(count * width)
    step_x = T * B * 3 * width
    shared = {
        2: same(floats(LANES)),
        3: same(np.array([5, 0])),
        4: same(np.array([FAR])),
        6: (packed, np.ascontiguousarray(small_gates_by_unit(packed, width)[:count])),
        7: (bias, bias[: count * width]),
    }
    own = {0: np.zeros((LANES, T * B * LANES), np.float32), 1: floats(LANES, B * LANES)}
    own[5] = floats(LANES, count * step_x)
    end = count * width
    frames = [At(0), At(1), At(2), At(3), At(4), 0, T, B, LANES, 0, B * LANES, LANES, 0, real_bits(0.0)]
    args = [*frames, count, At(5), step_x, backwards, At(6), At(7), *WORDS]
    other = [
        At(0),
        At(1),
        At(5),
        At(6),
        At(7),
        count,
        step_x,
        backwards,
        width,
        T,
        B,
        LANES,
        B * LANES,
        LANES,
    ]
    arrays = {**{n: each[1] for n, each in shared.items()}, **{n: each.T.copy() for n, each in own.items()}}
    ordered = [arrays[n] for n in range(len(arrays))]
    for after in run_both(interleaved_gru, ordered, *other, real_bits(0.0), *WORDS):
        for i in range(LANES):
            alone = [own[n][i] if n in own else shared[n][0] for n in range(len(arrays))]
            wanted = run_row(kernel, alone, *args, python=False)
            for n in (0, 1):
                output, expected = after[n].T[i].reshape(-1, LANES), wanted[n].reshape(-1, LANES)
                np.testing.assert_allclose(output[:, :end], expected[:, :end], rtol=1e-4, atol=2e-5)
