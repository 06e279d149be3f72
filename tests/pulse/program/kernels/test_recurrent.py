"""The recurrent kernels and running sums against the cells in float64, as plain Python and compiled."""

from typing import Any

import numpy as np
import pytest

from pulse.jit.registry import Kernel
from pulse.jit.rows.instruction import Form
from pulse.ops.recurrent_cells import GATE_COUNTS, Activation, Cell, CellKind
from pulse.ops.weight_units import UnitLayout
from pulse.program.kernels.cumulative import cumsum
from pulse.program.kernels.recurrent import rnn
from pulse.program.kernels.recurrent_gates import ACTIVATIONS, pack_gates
from pulse.program.kernels.recurrent_gru import gru, gru_reset
from pulse.program.kernels.recurrent_lstm import lstm
from pulse.program.weights import Stored, store
from pulse.support.bounds import FAR
from tests.pulse.program.kernels.rows import At, run_both

GAP = 3
FUNCTIONS = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
KERNELS: dict[tuple[CellKind, bool], Kernel] = {
    ("rnn", False): rnn,
    ("gru", True): gru,
    ("gru", False): gru_reset,
    ("lstm", False): lstm,
}


def check(
    cell: Cell,
    T: int,
    B: int,
    H: int,
    clock: int = 0,
    end: int = FAR,
    offset: int = 0,
    reverse: bool = False,
    reload: bool = True,
    batch_outermost: bool = False,
    form: Form = "f32",
) -> None:
    """One row; frames and rows of y have gaps between them that must stay as they are."""
    rng = np.random.default_rng(T * 100 + B * 10 + H)
    rows, kind = GATE_COUNTS[cell.kind] * H, cell.kind

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    projected, r, own_bias = floats(T, B, rows), floats(rows, H) * np.float32(H**-0.5), floats(H)
    h, h0, c, c0, peepholes = floats(B, H), floats(H), floats(B, H), floats(B, H), floats(3 * H)
    step = H + GAP
    frame = step if batch_outermost else B * step
    step = T * step if batch_outermost else step
    y = floats(T * B * (H + GAP))
    stored = (
        Stored(r.astype(np.float16), None, None)
        if form == "f16"
        else store(r, form, UnitLayout(r.shape, (1,)))
    )
    r, codes, scales = stored.values, stored.codes, stored.scales_of()
    bias = np.zeros(rows)
    split = kind == "gru" and not cell.linear_before_reset
    if kind == "gru" and cell.linear_before_reset:
        bias[2 * H :] = own_bias
    state: list[Any] = [np.broadcast_to(h0, (B, H)), c0] if reload and clock == 0 else [h, c]
    current = tuple(part.astype(np.float64) for part in state[: cell.states])
    wanted = y.copy()

    def row_of(t: int, b: int) -> slice:
        return slice(t * frame + b * step, t * frame + b * step + H)

    first = clock * T - offset
    for t in range(T)[::-1] if reverse else range(T):
        inside = 0 <= first + t < end
        if inside:
            current = cell.step(
                projected[t].astype(np.float64), current, r.astype(np.float64), bias, peepholes
            )
        for b in range(B):
            wanted[row_of(t, b)] = current[0][b] if inside else 0
    weights = pack_gates(codes[: 2 * H] if split else codes, H)
    arrays = [projected, weights, y, h, h0, np.array([clock]), np.array([end])]
    functions = [
        word
        for function in cell.activations
        for word in (ACTIVATIONS[function.name], function.alpha, function.beta)
    ]
    args: list[Any] = [*map(At, range(2, 7)), offset, T, B, H, 0, frame, step, int(reload)]
    args += [float(cell.clip or 0), At(0), At(1), int(reverse), *functions]
    if kind == "gru":
        arrays += [pack_gates(codes[2 * H :], H) if split else own_bias] + [
            np.zeros((2, H), np.float32)
        ] * split
        args += [At(7)] + [At(8)] * split
    elif kind == "lstm":
        arrays += [c, c0, peepholes]
        args += [At(7), At(8), H, At(9), int(cell.input_forget)]
    if scales is not None:
        for part in (scales[: 2 * H], scales[2 * H :]) if split else (scales,):
            args.append(At(len(arrays)))
            arrays.append(pack_gates(part[:, None], H))
    kernel = KERNELS[kind, cell.linear_before_reset]
    for after in run_both(kernel.forms[form], arrays, *args):
        np.testing.assert_allclose(after[2], wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(after[3], current[0], rtol=1e-4, atol=1e-5)
        if kind == "lstm":
            np.testing.assert_allclose(after[7], current[1], rtol=1e-4, atol=1e-5)


def cell_of(kind: CellKind, before: bool = False, clip: float | None = None, couples: bool = False) -> Cell:
    return Cell(kind, tuple(map(Activation, FUNCTIONS[kind])), clip, before, couples)


@pytest.mark.parametrize(("kind", "before"), KERNELS)
@pytest.mark.parametrize(
    ("T", "B", "H"), [(1, 1, 1), (3, 2, 5), (2, 1, 16), (4, 3, 17), (1, 5, 35), (2, 8, 33), (0, 2, 4)]
)
def test_whole_sequences(kind: CellKind, before: bool, T: int, B: int, H: int) -> None:
    for reverse in (False, True):
        for batch_outermost in (False, True):
            check(cell_of(kind, before), T, B, H, reverse=reverse, batch_outermost=batch_outermost)


@pytest.mark.parametrize(("kind", "before"), KERNELS)
@pytest.mark.parametrize("form", ["f16", "bf16", "int8"])
def test_rounded_weights(kind: CellKind, before: bool, form: Form) -> None:
    for T, B, H in ((1, 1, 1), (2, 1, 17), (2, 4, 16), (1, 5, 35), (3, 2, 8)):
        check(cell_of(kind, before), T, B, H, form=form)
    check(cell_of(kind, before, clip=0.4), 3, 3, 18, clock=1, end=5, offset=1, reverse=True, form=form)


@pytest.mark.parametrize(("kind", "before"), KERNELS)
@pytest.mark.parametrize(
    ("clock", "end", "offset"),
    [
        (0, FAR, 2),
        (0, FAR, 9),
        (1, FAR, 2),
        (3, FAR, -2),
        (1, 6, 0),
        (2, 6, 0),
        (1, 4, 1),
        (0, 1, 1),
        (0, 0, 0),
    ],
)
def test_frames_outside_of_the_stream_leave_the_state_alone(
    kind: CellKind, before: bool, clock: int, end: int, offset: int
) -> None:
    for reload in (False, True):
        check(cell_of(kind, before), 4, 2, 6, clock, end, offset, reload=reload)


@pytest.mark.parametrize(("kind", "before"), KERNELS)
def test_limits_and_coupled_gates(kind: CellKind, before: bool) -> None:
    check(cell_of(kind, before, clip=0.3), 3, 2, 18)
    if kind == "lstm":
        check(cell_of(kind, couples=True), 3, 2, 18)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree_with_numpy(name: str) -> None:
    function = Activation(name, 0.3, 0.2)
    check(Cell("rnn", (function,)), 3, 2, 7)
    check(Cell("gru", (function, function), linear_before_reset=True), 3, 2, 7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize(
    ("clock", "end", "offset"), [(0, FAR, 0), (1, FAR, 2), (0, FAR, 2), (1, 7, 0), (2, 4, 0)]
)
@pytest.mark.parametrize("reload", [0, 1])
def test_running_sums_agree_with_numpy(
    dtype: type[np.generic], exclusive: int, clock: int, end: int, offset: int, reload: int
) -> None:
    T, M = 5, 7
    rng = np.random.default_rng(T)
    x = (rng.standard_normal((T, M)) * 9).astype(dtype)
    wide = np.float64 if np.issubdtype(dtype, np.floating) else np.int64
    sums = (rng.standard_normal(M) * 9).astype(wide)
    columns = rng.permutation(M)
    codes = {np.float32: 0, np.float64: 1, np.int64: 2, np.int32: 3}
    total = np.zeros(M, wide) if reload and clock == 0 else sums.copy()
    wanted = np.zeros((T, M), wide)
    for t in range(T):
        if 0 <= clock * T - offset + t < end:
            after = total + x[t, columns]
            wanted[t] = total if exclusive else after
            total = after
    arrays = [x, np.ones((T, M), dtype), sums, columns, np.arange(M), np.array([clock]), np.array([end])]
    args = [
        At(0),
        At(1),
        At(2),
        codes[dtype],
        T,
        M,
        At(3),
        At(4),
        M,
        M,
        exclusive,
        0,
        At(5),
        At(6),
        offset,
        reload,
    ]
    python, compiled = run_both(cumsum, arrays, *args)
    np.testing.assert_allclose(compiled[1], wanted.astype(dtype), rtol=1e-6)
    np.testing.assert_allclose(compiled[2], total, rtol=1e-12)
    for output, expected in ((python[1], wanted.astype(dtype)), (python[2], total)):
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)  # numpy adds a float32 as such
