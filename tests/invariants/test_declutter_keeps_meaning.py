"""Declutter returns an equal graph for random graphs, and all of its rewrites are reached."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from pulse.declutter import DECLUTTER, declutter_and_count
from pulse.models import TypedModel
from pulse.ops.source import Const
from tests.agreement import Expected
from tests.invariants.graphs import STEPS, feeds, random_model, shortest
from tests.invariants.graphs_positions import POSITION_STEPS


def shared_labels(model: TypedModel, simplified: TypedModel) -> list[str]:
    """Wires whose name outlived the rewrites; weights excepted, which may have taken a scale in."""
    names = {model.graph.label(outlet) for outlet in model.graph.wires()}
    wires = [
        outlet
        for outlet in simplified.graph.wires()
        if not isinstance(simplified.graph.node(outlet).op, Const)
    ]
    return [label for label in map(simplified.graph.label, wires) if label in names]


def assert_models_agree(model: TypedModel, simplified: TypedModel, seed: int) -> None:
    rng = default_rng(seed)
    min_length = shortest(model)
    assert list(simplified.inputs) == list(model.inputs)
    for length in (min_length, min_length + 1, min_length + 2, min_length + 13):
        values = feeds(model, length, rng)
        labels = [*model.outputs, *shared_labels(model, simplified)]
        expected, after = Expected(model, values, labels), simplified.run(values, labels)
        assert list(expected.outputs) == list(after)
        expected.assert_agrees(after, seed)


def assert_decluttered_agrees(seed: int, depth: int) -> Counter[str]:
    model = random_model(default_rng(seed), depth, (*STEPS, *POSITION_STEPS))
    nodes = len(model.graph.nodes)
    simplified, fired = declutter_and_count(model)
    assert len(model.graph.nodes) == nodes
    model.graph.check()
    simplified.graph.check()
    assert_models_agree(model, simplified, seed)
    again, more = declutter_and_count(simplified)
    assert not more
    assert len(again.graph.nodes) == len(simplified.graph.nodes)
    return fired


def test_every_rewrite_is_reached_and_keeps_the_meaning() -> None:
    fired = sum((assert_decluttered_agrees(seed, depth=12) for seed in range(200)), Counter[str]())
    assert {rewrite.name for rewrite in DECLUTTER} == set(fired), fired


@given(st.integers(0, 2**32), st.integers(1, 25))
@settings(max_examples=30, deadline=None)
def test_declutter_keeps_the_meaning(seed: int, depth: int) -> None:
    assert_decluttered_agrees(seed, depth)


@given(st.integers(0, 2**32), st.integers(0, 6))
@settings(max_examples=20, deadline=None)
def test_declutter_may_stop_anywhere(seed: int, patches: int) -> None:
    model = random_model(default_rng(seed), 8)
    simplified, fired = declutter_and_count(model, stop_after=patches)
    assert fired.total() <= patches
    assert_models_agree(model, simplified, seed)
