"""The power of the proof: mutants of pulsed graphs and of programs are all found, or give the same bit by bit."""

from collections import Counter
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from pulse.facts import Array
from pulse.models import PulsedModel
from pulse.program.backends.reference import ReferenceProgram
from pulse.program.native.native_program import NativeProgram
from pulse.program.whole_stream import stream_whole
from pulse.proof import prove_programs
from pulse.proof.oracle import Feeds, pulsed_oracle
from pulse.proof.trial_signals import draw_feeds
from pulse.proof.trials import plan_trials, short_lengths
from tests.invariants.mutants import (
    MODELS,
    adopt,
    apart,
    graph_mutants,
    program_of,
    same_bits,
    stays_inside,
    table_mutants,
)

pytestmark = pytest.mark.full_proofs

MIN_FOUND = {"residual": 30, "hourglass": 40, "mirrored": 16, "sums": 25, "attentive": 18, "gated": 25}
"""How many mutants of a graph must be found; 14 of others."""
SHARE = 4
"""The default suite tries one of this many mutants of a graph."""


def streams(model: PulsedModel) -> list[Feeds]:
    """Return short streams and a long one."""
    lengths = short_lengths(model)
    plain = [
        draw_feeds(model, length, seed=length)
        for length in (lengths[0], lengths[len(lengths) // 2], lengths[-1])
    ]
    return [*plain, draw_feeds(model, plan_trials(model).longest, "mixed", 9)]


def outcome(model: PulsedModel, mutant: Any, inputs: list[Feeds], expected: list[dict[str, Array]]) -> str:
    """``same`` bit by bit as the good program, else how the proof ends."""
    return (
        "same"
        if same_bits(mutant, inputs, expected)
        else prove_programs(model, pulsed_oracle(model), [mutant]).outcome
    )


@pytest.mark.parametrize("name", MODELS)
def test_the_unchanged_model_is_proved(name: str) -> None:
    model = MODELS[name]()
    assert prove_programs(model, pulsed_oracle(model), [NativeProgram(model)]).outcome == "equal"


@pytest.mark.parametrize("step", [SHARE, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", MODELS)
def test_mutants_of_graphs_are_found(name: str, step: int) -> None:
    """Delays off by one, stale states, wrong taps, other ends, a single error of 1e-4 of a wire's scale."""
    model = MODELS[name]()
    inputs = streams(model)

    @cache
    def good_outputs(slow: bool) -> list[dict[str, Array]]:
        good = ReferenceProgram(model) if slow else NativeProgram(model)
        return [stream_whole(good, feeds) for feeds in inputs]

    outcomes: Counter[str] = Counter()
    for mutant in islice(graph_mutants(model), 0, None, step):
        ended = outcome(model, program_of(model, mutant), inputs, good_outputs(mutant.slow))
        assert ended in ("diverged", "same"), mutant.name
        outcomes[ended] += 1
    print(name, dict(outcomes))
    assert outcomes["diverged"] >= MIN_FOUND.get(name, 14) // step, outcomes
    assert outcomes["same"] <= outcomes["diverged"] // 3 + (step > 1), outcomes


def test_there_are_many_mutants() -> None:
    assert sum(len(list(graph_mutants(make()))) for make in MODELS.values()) >= 220


def outcomes_of_mutants(name: str, share: float) -> Counter[str]:
    """Some of the mutants of a model's program."""
    model = MODELS[name]()
    program, inputs, chosen = NativeProgram(model), streams(model), np.random.default_rng(1)
    expected = [stream_whole(program, feeds) for feeds in inputs]
    outcomes: Counter[str] = Counter()
    for mutant in table_mutants(program, np.random.default_rng(0)):
        if chosen.random() > share:
            continue
        if not stays_inside(model, program, mutant):
            outcomes["leaves its memory"] += 1
            continue

        def outcome_of(mutant: Any = mutant) -> str:
            other = NativeProgram(model)
            adopt(other, mutant)
            return outcome(model, other, inputs, expected)

        ended = apart(outcome_of)
        assert ended in ("diverged", "same"), (mutant.name, ended)
        outcomes[ended] += 1
    print(name, dict(outcomes))
    return outcomes


@pytest.mark.parametrize("name", MODELS)
def test_some_mutants_of_programs_are_found(name: str) -> None:
    assert outcomes_of_mutants(name, 0.25)["diverged"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_all_mutants_of_programs_are_found(name: str) -> None:
    """Rows left out or exchanged, arguments and operands off by one, other weights, other first states."""
    assert outcomes_of_mutants(name, 1.0)["diverged"] >= 15
