"""Inference on random models: true, of no order, idempotent, monotone."""

import functools
from collections import Counter

import numpy as np
import pytest

from pulse.errors import LoadError
from pulse.infer.fact import InferenceFact
from pulse.loading.onnx_files import read_onnx
from tests.pulse.infer.fact_agreement import assert_agrees, facts_by_name
from tests.pulse.infer.random_models import Knowledge, RandomBuilder, erase_facts, file, random_sketch

ORDERS, FEW_ORDERS = 50, 15
SEEDS = range(16)


@functools.cache
def case(seed: int) -> tuple[RandomBuilder, dict[str, InferenceFact]]:
    """A builder and the truth about its wires."""
    builder = random_sketch(seed, 9, symbolic=seed % 3 == 0)
    whole = facts_by_name(read_onnx(file(builder, erase_facts(builder, 0, 0.0))))
    assert all(fact.to_typed() is not None for fact in whole.values())
    return builder, whole


def text(facts: dict[str, InferenceFact]) -> dict[str, str]:
    return {name: str(fact) for name, fact in sorted(facts.items())}


def amount(fact: InferenceFact) -> int:
    """Return the number of known parts of a fact."""
    sizes = sum(dim is not None for dim in fact.dims)
    return (fact.dtype is not None) + sizes + (fact.rank is not None)


@pytest.mark.parametrize("seed", SEEDS)
def test_inferred_facts_are_true(seed: int) -> None:
    builder, truth = case(seed)
    for chance in (0.3, 0.6, 0.9):
        assert_agrees(facts_by_name(read_onnx(file(builder, erase_facts(builder, seed, chance)))), truth)


@pytest.mark.parametrize("seed", SEEDS)
def test_analysing_twice_changes_nothing(seed: int) -> None:
    builder, _ = case(seed)
    once = read_onnx(file(builder, erase_facts(builder, seed, 0.6))).infer()
    assert text(facts_by_name(once)) == text(facts_by_name(once.infer()))
    assert "\n".join(once.lines()) == "\n".join(once.infer().lines())


@pytest.mark.parametrize("seed", SEEDS)
def test_more_knowledge_never_gives_less(seed: int) -> None:
    builder, _ = case(seed)
    less, *others = [
        facts_by_name(read_onnx(file(builder, erase_facts(builder, seed, chance))))
        for chance in (0.9, 0.6, 0.3, 0.0)
    ]
    for more in others:
        assert_agrees(less, more)
        less = more


@pytest.mark.parametrize(
    "seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 4, 6, 7, 8))]
)
def test_the_order_of_nodes_does_not_matter(seed: int, default_suite: bool) -> None:
    builder, _ = case(seed)
    left = erase_facts(builder, seed, 0.7)
    expected = text(facts_by_name(read_onnx(file(builder, left))))
    for number in range(FEW_ORDERS if default_suite else ORDERS):
        model = read_onnx(file(builder, left, np.random.default_rng(number)))
        assert text(facts_by_name(model)) == expected


def test_contradictions_do_not_depend_on_the_order_of_nodes() -> None:
    builder, _ = case(2)
    wrong = Knowledge(
        {name: "1,1,1,1,1,f32" if name in builder.inputs else "...,f32" for name in builder.wires}
    )
    messages = set()
    for number in range(10):
        with pytest.raises(LoadError) as caught:
            read_onnx(file(builder, wrong, np.random.default_rng(number))).infer()
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_most_facts_and_inputs_are_inferred() -> None:
    """Over all seeds: inputs that are found again, and facts that were not stated."""
    reached: Counter[str] = Counter()
    for seed in SEEDS:
        builder, truth = case(seed)
        left = erase_facts(builder, seed, 0.6)
        inferred = facts_by_name(read_onnx(file(builder, left)))
        for name, fact in inferred.items():
            reached["facts"] += amount(fact)
            reached["true facts"] += amount(truth[name])
        for name in builder.inputs:
            unknown = "?" in left.stated[name] or "..." in left.stated[name]
            reached["inputs"] += unknown
            reached["found"] += unknown and inferred[f"{name}:0"].to_typed() is not None
    assert reached["facts"] > 0.9 * reached["true facts"], reached
    assert reached["found"] > 0.3 * reached["inputs"] > 7, reached
