"""The recurrent kernels against the cells in float64, as plain Python and compiled."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pulse.jit.rows.instruction import Form, Instruction
from pulse.ops.recurrent_cells import Activation, Cell
from pulse.ops.recurrent_gates import CellKind
from pulse.program.kernels.recurrent import gates
from pulse.program.kernels.recurrent.gates import ACTIVATIONS
from pulse.support.bounds import UNBOUNDED
from tests.failed_cases import in_one_test
from tests.pulse.program.kernels.recurrent.recurrent_rows import (
    CellData,
    CellPulse,
    expected_values,
    recurrent_row,
)
from tests.pulse.program.kernels.rows import run_both, run_row

FUNCTIONS = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
CELLS: Sequence[tuple[CellKind, bool]] = [("rnn", False), ("gru", True), ("gru", False), ("lstm", False)]
"""The kinds, and whether the reset gate of a GRU comes after its product."""


def assert_agrees_with_the_cell(
    pulse: CellPulse, run: Callable[[Instruction], Iterable[dict[str, NDArray[Any]]]] = run_both
) -> None:
    """Run its row as plain Python and compiled; both give what the cell gives, and change no gap of y."""
    data = CellData(pulse)
    y, state = expected_values(pulse, data)
    row = recurrent_row(pulse, data)
    assert row.form == pulse.form
    for after in run(row):
        for name, expected in zip("yhc", (y, *state), strict=False):
            np.testing.assert_allclose(after[name], expected, rtol=1e-4, atol=1e-5)


def cell_of(kind: CellKind, before: bool = False, clip: float | None = None, couples: bool = False) -> Cell:
    return Cell(kind, tuple(map(Activation, FUNCTIONS[kind])), clip, before, couples)


@pytest.mark.parametrize(("kind", "before"), CELLS)
@in_one_test(
    ("T", "B", "H"), [(1, 1, 1), (3, 2, 5), (2, 1, 16), (4, 3, 17), (1, 5, 35), (2, 8, 33), (0, 2, 4)]
)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("batch_outermost", [False, True])
def test_whole_sequences_agree_with_the_cell(
    kind: CellKind, before: bool, T: int, B: int, H: int, reverse: bool, batch_outermost: bool
) -> None:
    assert_agrees_with_the_cell(
        CellPulse(cell_of(kind, before), T, B, H, reverse=reverse, batch_outermost=batch_outermost)
    )


@pytest.mark.parametrize(("kind", "before"), CELLS)
@pytest.mark.parametrize("form", ["f16", "bf16", "int8"])
@in_one_test(("T", "B", "H"), [(1, 1, 1), (2, 1, 17), (2, 4, 16), (1, 5, 35), (3, 2, 8)])
def test_rounded_weights_agree_with_the_cell(
    kind: CellKind, before: bool, form: Form, T: int, B: int, H: int
) -> None:
    assert_agrees_with_the_cell(CellPulse(cell_of(kind, before), T, B, H, form=form))


@pytest.mark.parametrize(("kind", "before"), [("gru", True), ("lstm", False)])
@pytest.mark.parametrize("form", ["f32", "bf16", "int8"])
@pytest.mark.parametrize("eight", [False, True])
def test_groups_of_four_states_agree_for_all_registers(
    monkeypatch: pytest.MonkeyPatch, kind: CellKind, before: bool, form: Form, eight: bool
) -> None:
    """This runs plain Python; the compiled kernels have the registers of this processor.

    Groups of eight are those of lanes: ``test_lane_kernels_as_plain_python_stay_inside_their_memory``.
    """
    monkeypatch.setattr(gates, "HAS_AVX512", eight)
    pulse = CellPulse(cell_of(kind, before), 2, 7, 33, form=form)
    assert_agrees_with_the_cell(pulse, lambda row: [run_row(row, python=True)])


@pytest.mark.parametrize(("kind", "before"), CELLS)
@pytest.mark.parametrize("form", ["f16", "bf16", "int8"])
def test_rounded_weights_of_a_clipped_cell_agree_in_reverse(kind: CellKind, before: bool, form: Form) -> None:
    assert_agrees_with_the_cell(
        CellPulse(
            cell_of(kind, before, clip=0.4), 3, 3, 18, clock=1, end=5, offset=1, reverse=True, form=form
        )
    )


@pytest.mark.parametrize(("kind", "before"), CELLS)
@pytest.mark.parametrize(
    ("clock", "end", "offset"),
    [
        (0, UNBOUNDED, 2),
        (0, UNBOUNDED, 9),
        (1, UNBOUNDED, 2),
        (3, UNBOUNDED, -2),
        (1, 6, 0),
        (2, 6, 0),
        (1, 4, 1),
        (0, 1, 1),
        (0, 0, 0),
    ],
)
@in_one_test("reload", [False, True])
def test_frames_outside_of_the_stream_leave_the_state_alone(
    kind: CellKind, before: bool, clock: int, end: int, offset: int, reload: bool
) -> None:
    assert_agrees_with_the_cell(CellPulse(cell_of(kind, before), 4, 2, 6, clock, end, offset, reload=reload))


@pytest.mark.parametrize(("kind", "before"), CELLS)
def test_clipped_cells_agree_with_the_cell(kind: CellKind, before: bool) -> None:
    assert_agrees_with_the_cell(CellPulse(cell_of(kind, before, clip=0.3), 3, 2, 18))


def test_coupled_gates_agree_with_the_cell() -> None:
    assert_agrees_with_the_cell(CellPulse(cell_of("lstm", couples=True), 3, 2, 18))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree_with_numpy(name: str) -> None:
    function = Activation(name, 0.3, 0.2)
    assert_agrees_with_the_cell(CellPulse(Cell("rnn", (function,)), 3, 2, 7))
    assert_agrees_with_the_cell(
        CellPulse(Cell("gru", (function, function), linear_before_reset=True), 3, 2, 7)
    )
