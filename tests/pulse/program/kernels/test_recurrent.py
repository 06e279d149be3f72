"""The recurrent kernels and running sums against the cells in float64, as plain Python and compiled."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pulse.jit.rows.instruction import Form
from pulse.ops.recurrent_cells import GATE_COUNTS, Activation, Cell, CellKind
from pulse.ops.weight_units import UnitLayout
from pulse.program.kernels.cumulative import CumSumRow
from pulse.program.kernels.recurrent.gates import ACTIVATIONS, pack_gates
from pulse.program.kernels.recurrent.gru import GruResetRow, GruRow
from pulse.program.kernels.recurrent.layer import RecurrentFloatFields
from pulse.program.kernels.recurrent.lstm import LstmRow
from pulse.program.kernels.recurrent.rnn import RnnRow
from pulse.program.weights import Stored, store
from pulse.support.bounds import FAR
from tests.pulse.program.kernels.groups import activation
from tests.pulse.program.kernels.rows import run_both

GAP = 3
FUNCTIONS = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
CELLS: Sequence[tuple[CellKind, bool]] = [("rnn", False), ("gru", True), ("gru", False), ("lstm", False)]
"""The kinds, and whether the reset gate of a GRU comes after its product."""


def require_agreement_with_the_cell(
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
    """Run one row and compare it; frames and rows of y have gaps between them that must not change."""
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
    expected = y.copy()

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
            expected[row_of(t, b)] = current[0][b] if inside else 0
    split_scales: list[Any] = [None, None]
    if scales is not None:
        parts = (scales[: 2 * H], scales[2 * H :]) if split else (scales,)
        split_scales[: len(parts)] = [pack_gates(part[:, None], H) for part in parts]
    functions = [activation(function.name, function.alpha, function.beta) for function in cell.activations]
    fields: dict[str, Any] = {
        "y": y,
        "h": h,
        "h0": h0,
        "clock": np.array([clock]),
        "end": np.array([end]),
        "offset": offset,
        "T": T,
        "B": B,
        "H": H,
        "step_h0_row": 0,
        "step_frame": frame,
        "step_row": step,
        "reload": reload,
        "clip": float(cell.clip or 0),
        "x": projected,
        "W": pack_gates(codes[: 2 * H] if split else codes, H),
        "reverse": reverse,
        "scales": split_scales[0],
        **dict(zip(("f", "g", "out"), functions)),
    }
    if split:
        last = pack_gates(codes[2 * H :], H)
        scratch = np.zeros((2, H), np.float32)
        row: RecurrentFloatFields = GruResetRow(
            **fields, last=last, scratch=scratch, last_scales=split_scales[1]
        )
    elif kind == "gru":
        row = GruRow(**fields, bias=own_bias)
    elif kind == "lstm":
        row = LstmRow(**fields, c=c, c0=c0, step_c0_row=H, peepholes=peepholes, couples=cell.input_forget)
    else:
        row = RnnRow(**fields)
    assert row.form == form
    for after in run_both(row):
        np.testing.assert_allclose(after["y"], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(after["h"], current[0], rtol=1e-4, atol=1e-5)
        if kind == "lstm":
            np.testing.assert_allclose(after["c"], current[1], rtol=1e-4, atol=1e-5)


def cell_of(kind: CellKind, before: bool = False, clip: float | None = None, couples: bool = False) -> Cell:
    return Cell(kind, tuple(map(Activation, FUNCTIONS[kind])), clip, before, couples)


@pytest.mark.parametrize(("kind", "before"), CELLS)
@pytest.mark.parametrize(
    ("T", "B", "H"), [(1, 1, 1), (3, 2, 5), (2, 1, 16), (4, 3, 17), (1, 5, 35), (2, 8, 33), (0, 2, 4)]
)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("batch_outermost", [False, True])
def test_whole_sequences_agree_with_the_cell(
    kind: CellKind, before: bool, T: int, B: int, H: int, reverse: bool, batch_outermost: bool
) -> None:
    require_agreement_with_the_cell(
        cell_of(kind, before), T, B, H, reverse=reverse, batch_outermost=batch_outermost
    )


@pytest.mark.parametrize(("kind", "before"), CELLS)
@pytest.mark.parametrize("form", ["f16", "bf16", "int8"])
def test_rounded_weights_agree_with_the_cell(kind: CellKind, before: bool, form: Form) -> None:
    for T, B, H in ((1, 1, 1), (2, 1, 17), (2, 4, 16), (1, 5, 35), (3, 2, 8)):
        require_agreement_with_the_cell(cell_of(kind, before), T, B, H, form=form)
    require_agreement_with_the_cell(
        cell_of(kind, before, clip=0.4), 3, 3, 18, clock=1, end=5, offset=1, reverse=True, form=form
    )


@pytest.mark.parametrize(("kind", "before"), CELLS)
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
@pytest.mark.parametrize("reload", [False, True])
def test_frames_outside_of_the_stream_leave_the_state_alone(
    kind: CellKind, before: bool, clock: int, end: int, offset: int, reload: bool
) -> None:
    require_agreement_with_the_cell(cell_of(kind, before), 4, 2, 6, clock, end, offset, reload=reload)


@pytest.mark.parametrize(("kind", "before"), CELLS)
def test_clipped_cells_and_coupled_gates_agree_with_the_cell(kind: CellKind, before: bool) -> None:
    require_agreement_with_the_cell(cell_of(kind, before, clip=0.3), 3, 2, 18)
    if kind == "lstm":
        require_agreement_with_the_cell(cell_of(kind, couples=True), 3, 2, 18)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree_with_numpy(name: str) -> None:
    function = Activation(name, 0.3, 0.2)
    require_agreement_with_the_cell(Cell("rnn", (function,)), 3, 2, 7)
    require_agreement_with_the_cell(Cell("gru", (function, function), linear_before_reset=True), 3, 2, 7)


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
    expected_sums = np.zeros((T, M), wide)
    for t in range(T):
        if 0 <= clock * T - offset + t < end:
            after = total + x[t, columns]
            expected_sums[t] = total if exclusive else after
            total = after
    row = CumSumRow(
        x=x,
        y=np.ones((T, M), dtype),
        sums=sums,
        dtype=codes[dtype],
        T=T,
        M=M,
        columns_x=columns,
        columns_y=np.arange(M),
        step_x=M,
        step_y=M,
        exclusive=exclusive,
        reverse=False,
        clock=np.array([clock]),
        end=np.array([end]),
        offset=offset,
        reload=reload,
    )
    python, compiled = run_both(row)
    np.testing.assert_allclose(compiled["y"], expected_sums.astype(dtype), rtol=1e-6)
    np.testing.assert_allclose(compiled["sums"], total, rtol=1e-12)
    for output, expected in ((python["y"], expected_sums.astype(dtype)), (python["sums"], total)):
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)  # numpy adds a float32 as such
