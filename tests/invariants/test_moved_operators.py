"""Any operator after anything that moves frames: it streams as it does alone, and is exact."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from pulse.models import PulsedModel
from pulse.onnx.write.model import to_onnx
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.runtimes.onnxruntime import RuntimeProgram
from tests.invariants.backends import backends
from tests.invariants.fronts import FRONTS, Front
from tests.invariants.moved_cases import StreamingCase, assignments, attempt, movable_cases, streaming_case
from tests.invariants.moved_kinds import every_kind
from tests.invariants.operator_cases import Runners, takes_softplus

REFUSED = "the padding before the first frame depends on the length"
"""The one honest refusal: SAME padding, whose place depends on the remainder of a length that a front has changed."""
UNFIT = "its lengths do not fit"
"""The model meets its stream with a tensor of constant length, which the frames that a front adds do not fit."""
LOOK_FURTHER = {"Window", "Cumulative", "Banded", "Ends"}
"""Relations to other frames than the one of the output."""
FEW, POINTWISE = 3, 3
"""Fronts of each kind in the default suite, which tries one of this many kinds that look at their own frame alone."""


def reference(model: PulsedModel, rng: np.random.Generator) -> list[Program]:
    """The pulsed graph in numpy."""
    return [compile_model(model, "numpy")]


def programs_of(model: PulsedModel, rng: np.random.Generator) -> list[Program]:
    """Every program that there is of it, the file included where onnxruntime is exact."""
    return [
        *backends(model, rng),
        *([] if takes_softplus(model) else [RuntimeProgram(model, to_onnx(model))]),
    ]


def every_case() -> Iterator[StreamingCase]:
    """Each case over each of its axes, where it streams."""
    for case in movable_cases():
        for axes in assignments(case[2]):
            streaming = streaming_case(case, axes)
            if streaming is not None:
                yield streaming


def in_front(streaming: StreamingCase, front: Front, only_first: bool) -> dict[str, Front]:
    """The front for all inputs, or for the first alone if it keeps the length; none if it does not suit."""
    names = list(streaming.axes)[:1] if only_first and front.keeps_length else list(streaming.axes)
    suiting = all(front.suits(streaming.case[2][name]) for name in names)
    return dict.fromkeys(names, front) if suiting else {}


def move(
    streaming: StreamingCase,
    fronts: dict[str, Front],
    runners: Runners,
    rng: np.random.Generator,
    ended: Counter[str],
    pairs: Counter[tuple[str, str]],
) -> None:
    """Try one, count how it ended, and which relation met which front."""
    if not fronts:
        return
    end = attempt(streaming, fronts, int(rng.integers(1, 4)), runners, rng)
    ended[end] += 1
    if end == "equal":
        pairs.update((relation, front.name) for relation in streaming.relations for front in fronts.values())


def least_met(
    streaming: StreamingCase, pairs: Counter[tuple[str, str]], rng: np.random.Generator
) -> list[Front]:
    """The fronts in a random order, but first those that the case's relations have met most rarely."""
    order = rng.permutation(len(FRONTS))
    meetings = [sum(pairs[relation, front.name] for relation in streaming.relations) for front in FRONTS]
    return [FRONTS[number] for number in sorted(order, key=lambda number: meetings[number])]


def honest(ended: Counter[str]) -> bool:
    """Whether nothing ended in another way than those that are known."""
    return set(ended) <= {"equal", "no length", REFUSED, UNFIT}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fronts", [FEW, pytest.param(8, marks=pytest.mark.slow)])
def test_every_kind_of_operator_streams_after_some_fronts(fronts: int) -> None:
    """Every kind that looks at other frames after some, every relation after each; by default few of the rest."""
    ended: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    kinds = 0
    for number, streaming in enumerate(every_kind()):
        kinds += 1
        if not streaming.relations & LOOK_FURTHER and number % POINTWISE and fronts == FEW:
            continue
        rng = np.random.default_rng(number)
        count = fronts if streaming.relations & LOOK_FURTHER else 1
        for front in least_met(streaming, pairs, rng)[:count]:
            runners = backends if rng.random() < 0.25 else reference
            move(streaming, in_front(streaming, front, rng.random() < 0.5), runners, rng, ended, pairs)
    assert honest(ended), ended
    assert kinds >= 400
    assert ended["equal"] >= 100 * fronts, ended
    assert ended["no length"] <= 10, ended
    for relation in ("Pointwise", "Window", "Cumulative", "Banded"):
        assert all(pairs[relation, front.name] for front in FRONTS), (relation, pairs)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "seeds", [range(160), pytest.param(range(160, 400), marks=pytest.mark.slow)], ids=len
)
def test_operators_behind_two_fronts_stream_exactly(seeds: range) -> None:
    """Two in a row, another pair before each input that may differ; the file too."""
    ended: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    keeping = [front for front in FRONTS if front.keeps_length]
    cases = movable_cases()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        case = cases[int(rng.integers(len(cases)))]
        choice = list(assignments(case[2]))
        streaming = streaming_case(case, choice[int(rng.integers(len(choice)))]) if choice else None
        if streaming is None:
            continue
        moved: dict[str, Front] = {}
        for name in streaming.axes:
            fronts = FRONTS if len(streaming.axes) == 1 else keeping
            first, second = (fronts[int(rng.integers(len(fronts)))] for _ in range(2))
            if first.suits(case[2][name]) and second.suits(case[2][name]):
                moved[name] = first.then(second)
        move(streaming, moved, programs_of if seed % 2 else backends, rng, ended, pairs)
    assert honest(ended), ended
    assert ended["equal"] >= len(seeds) // 2, ended


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("front", FRONTS, ids=[front.name for front in FRONTS])
def test_every_operator_case_behind_a_front_streams_exactly(front: Front) -> None:
    """All axes of all cases, at every front of its own, before one input and before all."""
    ended: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for number, streaming in enumerate(every_case()):
        rng = np.random.default_rng(number)
        for only_first in (False, True)[: len(streaming.axes)]:
            move(streaming, in_front(streaming, front, only_first), backends, rng, ended, pairs)
    print(ended, pairs)
    assert honest(ended), ended
    assert ended["equal"] >= 1000
