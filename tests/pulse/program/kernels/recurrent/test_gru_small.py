"""Small GRUs side by side against the cell in float64, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.ops.recurrent_cells import Activation, Cell
from pulse.program.kernels.recurrent.gates import ACTIVATIONS
from pulse.program.kernels.recurrent.gru_small import GruEightsRow, GruFoursRow, SmallGruFields, pack_small
from pulse.support.bounds import UNBOUNDED
from tests.noise import next_noise
from tests.pulse.program.kernels.groups import activation
from tests.pulse.program.kernels.rows import run_both, run_row

KINDS = [GruFoursRow, GruEightsRow]


def assert_agrees_with_the_cell(
    rng: np.random.Generator,
    kind: type[SmallGruFields],
    T: int,
    B: int,
    H: int,
    count: int,
    clock: int = 0,
    end: int = UNBOUNDED,
    offset: int = 0,
    reload: bool = True,
    clip: float = 0.0,
    names: tuple[str, str] = ("sigmoid", "tanh"),
    backwards: int = 0,
) -> None:
    """Run one row of ``count`` GRUs and compare it; the values of lanes from H on do not matter."""
    width = kind.width
    functions = tuple(Activation(name, 0.3, 0.2) for name in names)
    cell = Cell("gru", functions, clip or None, linear_before_reset=True)
    projected, own_bias = next_noise(rng, count, T, B, 3, width), next_noise(rng, 16 // width, width)
    matrices = [next_noise(rng, 3 * H, H) * np.float32(0.5 * H**-0.5) for _ in range(count)]
    h, h0, y = next_noise(rng, B, 16), next_noise(rng, 1, 16), next_noise(rng, T, B, 16)
    row = kind(
        y=y,
        h=h,
        h0=h0,
        clock=np.array([clock]),
        end=np.array([end]),
        offset=offset,
        T=T,
        B=B,
        H=16,
        step_h0_row=0,
        step_frame=B * 16,
        step_row=16,
        reload=reload,
        clip=clip,
        count=count,
        x=projected,
        step_x=T * B * 3 * width,
        backwards=backwards,
        W=pack_small(matrices, width),
        bias=own_bias,
        f=activation(names[0], 0.3, 0.2),
        g=activation(names[1], 0.3, 0.2),
    )
    for after in run_both(row):
        for number, r in enumerate(matrices):
            units = slice(number * width, number * width + H)
            bias = np.concatenate([np.zeros(2 * H), own_bias[number, :H]])
            first = np.broadcast_to(h0, h.shape) if reload and clock == 0 else h
            state = (first[:, units].astype(np.float64),)
            for t in range(T):
                inside = 0 <= clock * T - offset + t < end
                if inside:
                    x = projected[number, t, :, :, :H].reshape(B, 3 * H).astype(np.float64)
                    state = cell.step(x, state, r.astype(np.float64), bias, None)
                expected = state[0] if inside else np.zeros((B, H))
                place = T - 1 - t if backwards >> number & 1 else t
                np.testing.assert_allclose(after["y"][place][:, units], expected, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(after["h"][:, units], state[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("T", "B"), [(1, 1), (5, 1), (3, 4), (1, 7), (0, 2)])
def test_whole_sequences_agree_with_the_cell(
    rng: np.random.Generator, kind: type[SmallGruFields], T: int, B: int
) -> None:
    width = kind.width
    for H in (1, width - 1, width):
        for count in range(2, 16 // width + 1):
            assert_agrees_with_the_cell(rng, kind, T, B, H, count)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("T", "B"), [(1, 1), (5, 1), (4, 3)])
def test_layers_that_run_backwards_agree_with_the_cell(
    rng: np.random.Generator, kind: type[SmallGruFields], T: int, B: int
) -> None:
    width = kind.width
    for count in range(2, 16 // width + 1):
        for backwards in range(1, 1 << count):
            assert_agrees_with_the_cell(rng, kind, T, B, width, count, backwards=backwards)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("clock", "end", "offset"), [(0, UNBOUNDED, 2), (0, UNBOUNDED, 9), (1, 6, 0), (2, 6, 0), (0, 1, 1)]
)
@pytest.mark.parametrize("reload", [False, True])
def test_frames_outside_of_the_stream_leave_the_state_alone(
    rng: np.random.Generator, kind: type[SmallGruFields], clock: int, end: int, offset: int, reload: bool
) -> None:
    assert_agrees_with_the_cell(rng, kind, 4, 2, kind.width - 1, 2, clock, end, offset, reload)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_all_activations_and_clips_agree_with_the_cell(
    rng: np.random.Generator, kind: type[SmallGruFields], name: str
) -> None:
    assert_agrees_with_the_cell(rng, kind, 3, 2, kind.width, 2, names=(name, name))
    assert_agrees_with_the_cell(rng, kind, 3, 2, kind.width, 2, clip=0.3)


def states(
    kind: type[SmallGruFields], z: np.ndarray, r: np.ndarray, c: np.ndarray, own_bias: float
) -> np.ndarray:
    """The states after one frame of sequences that begin with 1, without recurrent weights; one gate input each."""
    width, B = kind.width, len(z)
    projected = np.broadcast_to(np.stack([z, r, c], 1).astype(np.float32)[..., None], (1, B, 3, width))
    row = kind(
        y=np.zeros((B, 16), np.float32),
        h=np.ones((B, 16), np.float32),
        h0=np.zeros(16, np.float32),
        clock=np.array([3]),
        end=np.array([UNBOUNDED]),
        offset=0,
        T=1,
        B=B,
        H=16,
        step_h0_row=0,
        step_frame=B * 16,
        step_row=16,
        reload=False,
        clip=0.0,
        count=1,
        x=projected,
        step_x=3 * B * width,
        backwards=0,
        W=np.zeros(3 * 16 * width, np.float32),
        bias=np.full(16, own_bias, np.float32),
        f=activation("sigmoid"),
        g=activation("tanh"),
    )
    return run_row(row, python=False)["y"][:, 0].astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_the_usual_activations_are_a_few_ulp(kind: type[SmallGruFields]) -> None:
    """Each gate alone has an error of at most 5 ulp of 1 for tanh, 3 for the sigmoids."""
    x, large = np.linspace(-30, 30, 60001), np.full(60001, 200.0)
    ulp = float(np.finfo(np.float32).eps) / 2
    x = x.astype(np.float32).astype(np.float64)
    assert np.abs(states(kind, -large, x, x, 0.0) - np.tanh(x)).max() < 6 * ulp
    kept = 1 / (1 + np.exp(-x))
    assert np.abs(states(kind, x, x, -large, 0.0) - (2 * kept - 1)).max() < 8 * ulp
    assert np.abs(states(kind, -large, x, 0 * x, 1.0) - np.tanh(kept)).max() < 6 * ulp
    limits = np.array([np.inf, -np.inf, np.nan])
    one = np.full(3, -200.0)
    np.testing.assert_allclose(states(kind, one, 0 * one, limits, 0.0), [1, -1, np.nan], rtol=2e-7)
    np.testing.assert_allclose(states(kind, limits, one, one, 0.0), [1, -1, np.nan], atol=2e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_nan_in_one_layer_does_not_reach_the_other(
    rng: np.random.Generator, kind: type[SmallGruFields]
) -> None:
    width = kind.width
    projected = np.zeros((2, 2, 1, 3, width), np.float32)
    projected[1] = np.nan
    row = kind(
        y=next_noise(rng, 2, 1, 16),
        h=next_noise(rng, 1, 16),
        h0=next_noise(rng, 1, 16),
        clock=np.array([0]),
        end=np.array([UNBOUNDED]),
        offset=0,
        T=2,
        B=1,
        H=16,
        step_h0_row=0,
        step_frame=16,
        step_row=16,
        reload=True,
        clip=0.0,
        count=2,
        x=projected,
        step_x=2 * 3 * width,
        backwards=0,
        W=pack_small([next_noise(rng, 3 * width, width) for _ in range(2)], width),
        bias=next_noise(rng, 16),
        f=activation("tanh"),
        g=activation("sigmoid"),
    )
    for after in run_both(row):
        lanes = after["y"].reshape(2, 16)
        assert np.isfinite(lanes[:, :width]).all()
        assert np.isnan(lanes[:, width : 2 * width]).all()
