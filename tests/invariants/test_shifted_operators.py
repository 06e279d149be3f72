"""Any operator after nodes that shift its frames streams as it does alone, and is exact."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from pulse.models import PulsedModel
from pulse.onnx.write.model import to_onnx
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.runtimes.onnx_runtimes import RuntimeProgram
from tests.invariants.backends import backends
from tests.invariants.distinct_cases import distinct_cases
from tests.invariants.operator_cases import Runners, takes_softplus
from tests.invariants.shifted_cases import (
    StreamingCase,
    assignments,
    attempt,
    shiftable_cases,
    streaming_case,
)
from tests.invariants.shifting_nodes import SHIFTS, Shift

REFUSED = "the padding before the first frame depends on the length"
"""The only known refusal: SAME padding, whose place depends on the remainder of a length that a shift has changed."""
UNFIT = "its lengths do not fit"
"""The model meets its stream with a tensor of constant length, which the frames that a shift adds do not fit."""
LOOK_FURTHER = {"Window", "Cumulative", "Banded", "Ends"}
"""Relations to other frames than the one of the output."""
SHIFTS_PER_CASE = 2
"""Shifts of each distinct case in the default suite; the slow tests try all shifts of all cases."""
POINTWISE_STEP = 3
"""The default suite tries every third of the cases that look at their own frame alone."""


def reference(model: PulsedModel, rng: np.random.Generator) -> list[Program]:
    """Return the pulsed graph in numpy."""
    return [compile_model(model, "numpy")]


def programs_of(model: PulsedModel, rng: np.random.Generator) -> list[Program]:
    """All programs of it, and its file in onnxruntime if that is exact."""
    return [
        *backends(model, rng),
        *([] if takes_softplus(model) else [RuntimeProgram(model, to_onnx(model))]),
    ]


def every_case() -> Iterator[StreamingCase]:
    """Each case over each axis along which it streams."""
    for case in shiftable_cases():
        for axes in assignments(case[2]):
            streaming = streaming_case(case, axes)
            if streaming is not None:
                yield streaming


def shifts_before(streaming: StreamingCase, shift: Shift, only_first: bool) -> dict[str, Shift]:
    """The shift for all inputs, or for the first alone if it keeps the length; none if it does not suit."""
    names = list(streaming.axes)[:1] if only_first and shift.keeps_length else list(streaming.axes)
    suiting = all(shift.suits(streaming.case[2][name]) for name in names)
    return dict.fromkeys(names, shift) if suiting else {}


def count_outcome(
    streaming: StreamingCase,
    shifts: dict[str, Shift],
    runners: Runners,
    rng: np.random.Generator,
    outcomes: Counter[str],
    pair_counts: Counter[tuple[str, str]],
) -> None:
    """Run a case after its shifts; count its outcome and, if it is equal, its pairs of relation and shift."""
    if not shifts:
        return
    end = attempt(streaming, shifts, int(rng.integers(1, 4)), runners, rng)
    outcomes[end] += 1
    if end == "equal":
        pair_counts.update(
            (relation, shift.name) for relation in streaming.relations for shift in shifts.values()
        )


def shifts_by_rarity(
    streaming: StreamingCase, pair_counts: Counter[tuple[str, str]], rng: np.random.Generator
) -> list[Shift]:
    """The shifts in random order, sorted by how often the rarest pair with a relation of the case was reached."""
    order = rng.permutation(len(SHIFTS))
    counts = [min(pair_counts[relation, shift.name] for relation in streaming.relations) for shift in SHIFTS]
    return [SHIFTS[number] for number in sorted(order, key=lambda number: counts[number])]


def has_only_known_outcomes(outcomes: Counter[str]) -> bool:
    """Whether all outcomes are known ones."""
    return set(outcomes) <= {"equal", "no length", REFUSED, UNFIT}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_windows_states_and_some_others_stream_after_shifts() -> None:
    """Each distinct case after some shifts, each relation after all of them.

    Only every ``POINTWISE_STEP``-th case that looks at its own frame alone.
    """
    outcomes: Counter[str] = Counter()
    pair_counts: Counter[tuple[str, str]] = Counter()
    number = 0
    for number, streaming in enumerate(distinct_cases(), 1):
        if not streaming.relations & LOOK_FURTHER and number % POINTWISE_STEP:
            continue
        rng = np.random.default_rng(number)
        count = SHIFTS_PER_CASE if streaming.relations & LOOK_FURTHER else 1
        for shift in shifts_by_rarity(streaming, pair_counts, rng)[:count]:
            runners = backends if rng.random() < 0.25 else reference
            count_outcome(
                streaming,
                shifts_before(streaming, shift, rng.random() < 0.5),
                runners,
                rng,
                outcomes,
                pair_counts,
            )
    assert has_only_known_outcomes(outcomes), outcomes
    assert number >= 400
    assert outcomes["equal"] >= 200, outcomes
    assert outcomes["no length"] <= 10, outcomes
    for relation in ("Pointwise", "Window", "Cumulative", "Banded"):
        assert all(pair_counts[relation, shift.name] for shift in SHIFTS), (relation, pair_counts)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seeds", [range(80), pytest.param(range(80, 400), marks=pytest.mark.slow)], ids=len)
def test_operators_after_two_shifts_stream_exactly(seeds: range) -> None:
    """Each input has its own pair of shifts; files in onnxruntime are compared too."""
    outcomes: Counter[str] = Counter()
    pair_counts: Counter[tuple[str, str]] = Counter()
    keeping = [shift for shift in SHIFTS if shift.keeps_length]
    cases = shiftable_cases()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        case = cases[int(rng.integers(len(cases)))]
        choice = list(assignments(case[2]))
        streaming = streaming_case(case, choice[int(rng.integers(len(choice)))]) if choice else None
        if streaming is None:
            continue
        shifted: dict[str, Shift] = {}
        for name in streaming.axes:
            shifts = SHIFTS if len(streaming.axes) == 1 else keeping
            first, second = (shifts[int(rng.integers(len(shifts)))] for _ in range(2))
            if first.suits(case[2][name]) and second.suits(case[2][name]):
                shifted[name] = first.then(second)
        count_outcome(streaming, shifted, programs_of if seed % 2 else backends, rng, outcomes, pair_counts)
    assert has_only_known_outcomes(outcomes), outcomes
    assert outcomes["equal"] >= len(seeds) // 2, outcomes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shift", SHIFTS, ids=[shift.name for shift in SHIFTS])
def test_every_operator_case_after_a_shift_streams_exactly(shift: Shift) -> None:
    """All axes of all cases, with the shift before one input and before all."""
    outcomes: Counter[str] = Counter()
    pair_counts: Counter[tuple[str, str]] = Counter()
    for number, streaming in enumerate(every_case()):
        rng = np.random.default_rng(number)
        for only_first in (False, True)[: len(streaming.axes)]:
            count_outcome(
                streaming, shifts_before(streaming, shift, only_first), backends, rng, outcomes, pair_counts
            )
    print(outcomes, pair_counts)
    assert has_only_known_outcomes(outcomes), outcomes
    assert outcomes["equal"] >= 1000
