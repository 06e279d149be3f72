"""Kernels of sixteen streams with interleaved memories against those of one stream, as plain Python and compiled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pulse.jit.language.simd import LANES
from pulse.program.kernels.conv_depthwise import DepthwiseRow
from pulse.program.kernels.conv_interleaved import InterleavedDepthwiseRow
from pulse.program.kernels.matmul.epilogue import STEPS, Epilogue
from pulse.program.kernels.norm import LayerNormRow
from pulse.program.kernels.norm_interleaved import InterleavedLayerNormRow
from pulse.program.kernels.recurrent.gates import pack_gates
from pulse.program.kernels.recurrent.gru import GruRow
from pulse.program.kernels.recurrent.gru_interleaved import (
    InterleavedGruRow,
    gates_by_unit,
    small_gates_by_unit,
)
from pulse.program.kernels.recurrent.gru_small import GruEightsRow, GruFoursRow, SmallGruFields, pack_small
from pulse.support.bounds import UNBOUNDED
from tests.noise import next_noise
from tests.pulse.program.kernels.groups import activation, epilogue_of, epilogue_step
from tests.pulse.program.kernels.interleaved_rows import (
    Array,
    compare_products,
    compare_rows,
    interleave,
)
from tests.pulse.program.kernels.rows import run_both, run_row


def tables(rng: np.random.Generator, M: int, T: int, reach: int, width: int) -> tuple[Array, Array, Array]:
    """Random tables of rows of x, rows of y and taps."""
    return rng.permutation(M) * 3, rng.permutation(M) * (width + 2), rng.permutation(T) * (reach + 1)


STEP_ARGS: Mapping[str, float] = dict.fromkeys(STEPS, 0.3) | {"maxc": -0.1, "minc": 0.2}


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
        (4, 1, 3, 4, ("leaky_relu", "maxc", "minc")),
        (0, 1, 3, 4, ()),
    ],
)
def test_products_of_sixteen_streams_agree_with_single_ones(
    rng: np.random.Generator, M: int, T: int, K: int, N: int, steps: tuple[str, ...], accumulate: int
) -> None:
    rows_x, rows_y, taps = tables(rng, M, T, K, N)
    reach = 3 * M + T * (K + 1) + K
    matrix, size = next_noise(rng, T * K, N) * np.float32(0.4), max(1, M * (N + 2))
    x, y, added, by_column = (
        next_noise(rng, LANES, reach),
        next_noise(rng, LANES, size),
        next_noise(rng, LANES, size),
        next_noise(rng, N),
    )

    def epilogue(operand: Array) -> Epilogue:
        operands = [operand if name == "add" else by_column for name in steps]
        return epilogue_of(
            epilogue_step(name, operand, rows_y, STEP_ARGS[name]) for name, operand in zip(steps, operands)
        )

    common: dict[str, Any] = {
        "M": M,
        "rows_x": rows_x,
        "rows_y": rows_y,
        "T": T,
        "taps": taps,
        "K": K,
        "N": N,
        "accumulate": accumulate,
    }
    compare_products(rng, common, x, y, matrix, epilogue, added, "y")


@pytest.mark.parametrize("step", [None, "relu", "prelu"])
@pytest.mark.parametrize(("M", "T", "C"), [(0, 2, 3), (1, 1, 1), (4, 9, 16), (5, 3, 17), (9, 5, 8)])
def test_interleaved_depthwise_windows_agree_with_single_streams(
    rng: np.random.Generator, M: int, T: int, C: int, step: str | None
) -> None:
    rows_x, rows_y, taps = tables(rng, M, T, C, C)
    x, y = next_noise(rng, LANES, 3 * M + T * (C + 1) + C), next_noise(rng, LANES, max(1, M * (C + 2)))
    bias = next_noise(rng, C)
    steps = [] if step is None else [step]
    common: dict[str, Any] = {
        "M": M,
        "rows_x": rows_x,
        "rows_y": rows_y,
        "T": T,
        "taps": taps,
        "W": next_noise(rng, T, C),
        "bias": bias,
        "C": C,
        "epilogue": epilogue_of(epilogue_step(name, bias, rows_y) for name in steps),
    }
    singles = [DepthwiseRow(**common, x=x[i], y=y[i]) for i in range(LANES)]
    compare_rows(singles, InterleavedDepthwiseRow(**common, x=interleave(x), y=interleave(y)), "y")


@pytest.mark.parametrize(("M", "R"), [(1, 1), (2, 5), (1, 16), (3, 35)])
def test_interleaved_layer_norms_agree_with_single_streams(rng: np.random.Generator, M: int, R: int) -> None:
    rows = rng.permutation(M) * (R + 1)
    x, y = next_noise(rng, LANES, M * (R + 1)) + np.float32(3), next_noise(rng, LANES, M * (R + 1))
    common: dict[str, Any] = {
        "scale": next_noise(rng, R),
        "bias": next_noise(rng, R),
        "M": M,
        "rows_x": rows,
        "rows_y": rows[::-1].copy(),
        "R": R,
        "eps": 1e-3,
    }
    singles = [LayerNormRow(**common, x=x[i], y=y[i]) for i in range(LANES)]
    compare_rows(singles, InterleavedLayerNormRow(**common, x=interleave(x), y=interleave(y)), "y")


ALL_FRAMES: Mapping[str, Any] = {
    "h0": np.zeros(1, np.float32),
    "step_h0_row": 0,
    "clock": np.array([5]),
    "end": np.array([UNBOUNDED]),
    "offset": 0,
    "reload": False,
}
"""The fields of a layer whose frames are all of the stream."""


@pytest.mark.parametrize(("T", "B", "H"), [(1, 1, 1), (1, 3, 5), (4, 1, 16), (3, 2, 21)])
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_interleaved_recurrent_layers_agree_with_single_streams(
    rng: np.random.Generator, T: int, B: int, H: int, clip: float
) -> None:
    packed = pack_gates(next_noise(rng, 3 * H, H) * np.float32(0.5 * H**-0.5), H)
    y, h, x = (
        next_noise(rng, LANES, T * B * H),
        next_noise(rng, LANES, B * H),
        next_noise(rng, LANES, T * B * 3 * H),
    )
    common: dict[str, Any] = {
        "T": T,
        "B": B,
        "H": H,
        "step_frame": B * H,
        "step_row": H,
        "clip": clip,
        "bias": next_noise(rng, H),
        "f": activation("sigmoid"),
        "g": activation("tanh"),
    }
    singles = [
        GruRow(**common, **ALL_FRAMES, y=y[i], h=h[i], x=x[i], W=packed, reverse=False, scales=None)
        for i in range(LANES)
    ]
    several = InterleavedGruRow(
        **common,
        y=interleave(y),
        h=interleave(h),
        x=interleave(x),
        W=gates_by_unit(packed, H),
        count=1,
        step_x=0,
        backwards=0,
        units=H,
    )
    compare_rows(singles, several, "y", "h")


@pytest.mark.parametrize(
    ("kind", "count", "backwards"),
    [(GruFoursRow, 1, 0), (GruFoursRow, 3, 0b010), (GruFoursRow, 4, 0b1001), (GruEightsRow, 2, 0b01)],
)
@pytest.mark.parametrize(("T", "B"), [(1, 3), (5, 1), (2, 2)])
def test_small_layers_of_sixteen_streams_agree_with_single_ones(
    rng: np.random.Generator, kind: type[SmallGruFields], count: int, backwards: int, T: int, B: int
) -> None:
    width = kind.width
    packed = pack_small([next_noise(rng, 3 * width, width) * np.float32(0.4) for _ in range(count)], width)
    bias = np.zeros(LANES, np.float32)
    bias[: count * width] = next_noise(rng, count * width)
    step_x = T * B * 3 * width
    y = np.zeros((LANES, T * B * LANES), np.float32)
    h, x = next_noise(rng, LANES, B * LANES), next_noise(rng, LANES, count * step_x)
    common: dict[str, Any] = {
        "T": T,
        "B": B,
        "H": LANES,
        "step_frame": B * LANES,
        "step_row": LANES,
        "clip": 0.0,
        "count": count,
        "step_x": step_x,
        "backwards": backwards,
        "f": activation("sigmoid"),
        "g": activation("tanh"),
    }
    several = InterleavedGruRow(
        **common,
        y=interleave(y),
        h=interleave(h),
        x=interleave(x),
        W=np.ascontiguousarray(small_gates_by_unit(packed, width)[:count]),
        bias=bias[: count * width],
        units=width,
    )
    end = count * width
    singles = [
        run_row(kind(**common, **ALL_FRAMES, y=y[i], h=h[i], x=x[i], W=packed, bias=bias), python=False)
        for i in range(LANES)
    ]
    for after in run_both(several):
        for i, single in enumerate(singles):
            for name in ("y", "h"):
                output, expected = after[name].T[i].reshape(-1, LANES), single[name].reshape(-1, LANES)
                np.testing.assert_allclose(output[:, :end], expected[:, :end], rtol=1e-4, atol=2e-5)
