"""Small GRUs side by side against the cell in float64, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.jit.registry import Kernel
from pulse.ops.recurrent_cells import Activation, Cell
from pulse.program.kernels.recurrent_gates import ACTIVATIONS
from pulse.program.kernels.recurrent_gru_small import gru_eights, gru_fours, pack_small
from pulse.support.bounds import FAR
from tests.pulse.program.kernels.rows import At, run_both, run_row

RNG = np.random.default_rng(3)
WIDTHS: dict[Kernel, int] = {gru_fours: 4, gru_eights: 8}


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def check(
    kernel: Kernel,
    T: int,
    B: int,
    H: int,
    count: int,
    clock: int = 0,
    end: int = FAR,
    offset: int = 0,
    reload: bool = True,
    clip: float = 0.0,
    names: tuple[str, str] = ("sigmoid", "tanh"),
    backwards: int = 0,
) -> None:
    """One row of ``count`` GRUs; their lanes behind H hold anything."""
    width = WIDTHS[kernel]
    functions = tuple(Activation(name, 0.3, 0.2) for name in names)
    cell = Cell("gru", functions, clip or None, linear_before_reset=True)
    projected, own_bias = floats(count, T, B, 3, width), floats(16 // width, width)
    matrices = [floats(3 * H, H) * np.float32(0.5 * H**-0.5) for _ in range(count)]
    h, h0, y = floats(B, 16), floats(1, 16), floats(T, B, 16)
    arrays = [y, h, h0, np.array([clock]), np.array([end]), projected, pack_small(matrices, width), own_bias]
    args = [
        *map(At, range(5)),
        offset,
        T,
        B,
        16,
        0,
        B * 16,
        16,
        int(reload),
        clip,
        count,
        At(5),
        T * B * 3 * width,
        backwards,
    ]
    args += [At(6), At(7), *(word for name in names for word in (ACTIVATIONS[name], 0.3, 0.2))]
    for after in run_both(kernel, arrays, *args):
        for number, r in enumerate(matrices):
            own = slice(number * width, number * width + H)
            bias = np.concatenate([np.zeros(2 * H), own_bias[number, :H]])
            first = np.broadcast_to(h0, h.shape) if reload and clock == 0 else h
            state = (first[:, own].astype(np.float64),)
            for t in range(T):
                inside = 0 <= clock * T - offset + t < end
                if inside:
                    x = projected[number, t, :, :, :H].reshape(B, 3 * H).astype(np.float64)
                    state = cell.step(x, state, r.astype(np.float64), bias, None)
                wanted = state[0] if inside else np.zeros((B, H))
                place = T - 1 - t if backwards >> number & 1 else t
                np.testing.assert_allclose(after[0][place][:, own], wanted, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(after[1][:, own], state[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel", WIDTHS)
@pytest.mark.parametrize(("T", "B"), [(1, 1), (5, 1), (3, 4), (1, 7), (0, 2)])
def test_whole_sequences(kernel: Kernel, T: int, B: int) -> None:
    width = WIDTHS[kernel]
    for H in (1, width - 1, width):
        for count in range(2, 16 // width + 1):
            check(kernel, T, B, H, count)


@pytest.mark.parametrize("kernel", WIDTHS)
@pytest.mark.parametrize(("T", "B"), [(1, 1), (5, 1), (4, 3)])
def test_frames_of_layers_that_run_backwards(kernel: Kernel, T: int, B: int) -> None:
    width = WIDTHS[kernel]
    for count in range(2, 16 // width + 1):
        for backwards in range(1, 1 << count):
            check(kernel, T, B, width, count, backwards=backwards)


@pytest.mark.parametrize("kernel", WIDTHS)
@pytest.mark.parametrize(
    ("clock", "end", "offset"), [(0, FAR, 2), (0, FAR, 9), (1, 6, 0), (2, 6, 0), (0, 1, 1)]
)
@pytest.mark.parametrize("reload", [False, True])
def test_frames_outside_of_the_stream_leave_the_state_alone(
    kernel: Kernel, clock: int, end: int, offset: int, reload: bool
) -> None:
    check(kernel, 4, 2, WIDTHS[kernel] - 1, 2, clock, end, offset, reload)


@pytest.mark.parametrize("kernel", WIDTHS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_limits(kernel: Kernel, name: str) -> None:
    check(kernel, 3, 2, WIDTHS[kernel], 2, names=(name, name))
    check(kernel, 3, 2, WIDTHS[kernel], 2, clip=0.3)


def states(kernel: Kernel, z: np.ndarray, r: np.ndarray, c: np.ndarray, own_bias: float) -> np.ndarray:
    """The states after one frame of sequences that begin with 1, without recurrent weights; one gate input each."""
    width, B = WIDTHS[kernel], len(z)
    projected = np.broadcast_to(np.stack([z, r, c], 1).astype(np.float32)[..., None], (1, B, 3, width))
    constants = [np.zeros(16, np.float32), np.array([3]), np.array([FAR])]
    weights = np.zeros(3 * 16 * width, np.float32)
    arrays = [np.zeros((B, 16), np.float32), np.ones((B, 16), np.float32), *constants, projected.copy()]
    args = [*map(At, range(5)), 0, 1, B, 16, 0, B * 16, 16, 0, 0.0, 1, At(5), 3 * B * width, 0, At(6), At(7)]
    words = [word for name in ("sigmoid", "tanh") for word in (ACTIVATIONS[name], 0.0, 0.0)]
    arrays_after = run_row(
        kernel, [*arrays, weights, np.full(16, own_bias, np.float32)], *args, *words, python=False
    )
    return arrays_after[0][:, 0].astype(np.float64)


@pytest.mark.parametrize("kernel", WIDTHS)
def test_errors_of_the_usual_activations(kernel: Kernel) -> None:
    """Of each gate by itself: 5 ulp of 1 for tanh, 3 for the sigmoids."""
    x, large = np.linspace(-30, 30, 60001), np.full(60001, 200.0)
    ulp = float(np.finfo(np.float32).eps) / 2
    x = x.astype(np.float32).astype(np.float64)
    assert np.abs(states(kernel, -large, x, x, 0.0) - np.tanh(x)).max() < 6 * ulp
    kept = 1 / (1 + np.exp(-x))
    assert np.abs(states(kernel, x, x, -large, 0.0) - (2 * kept - 1)).max() < 8 * ulp
    assert np.abs(states(kernel, -large, x, 0 * x, 1.0) - np.tanh(kept)).max() < 6 * ulp
    limits = np.array([np.inf, -np.inf, np.nan])
    one = np.full(3, -200.0)
    np.testing.assert_allclose(states(kernel, one, 0 * one, limits, 0.0), [1, -1, np.nan], rtol=2e-7)
    np.testing.assert_allclose(states(kernel, limits, one, one, 0.0), [1, -1, np.nan], atol=2e-7)


@pytest.mark.parametrize("kernel", WIDTHS)
def test_layers_do_not_affect_each_other(kernel: Kernel) -> None:
    """Not even NaN."""
    width = WIDTHS[kernel]
    projected = np.zeros((2, 2, 1, 3, width), np.float32)
    projected[1] = np.nan
    weights = pack_small([floats(3 * width, width) for _ in range(2)], width)
    arrays = [
        floats(2, 1, 16),
        floats(1, 16),
        floats(1, 16),
        np.array([0]),
        np.array([FAR]),
        projected,
        weights,
    ]
    args = [*map(At, range(5)), 0, 2, 1, 16, 0, 16, 16, 1, 0.0, 2, At(5), 2 * 3 * width, 0, At(6), At(7)]
    for after in run_both(kernel, [*arrays, floats(16)], *args, 0, 0.0, 0.0, 1, 0.0, 0.0):
        lanes = after[0].reshape(2, 16)
        assert np.isfinite(lanes[:, :width]).all() and np.isnan(lanes[:, width : 2 * width]).all()
