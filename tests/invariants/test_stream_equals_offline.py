"""The invariant: for every model, pulse and length, all valid frames of a stream equal the offline output."""

from collections import Counter

import numpy as np
import pytest

from pulse.errors import PulsifyError
from pulse.models import PulsedModel, TypedModel
from pulse.program.compiler import compile_model
from pulse.proof.critical_lengths import critical_lengths
from pulse.pulsify.driver import pulsify
from pulse.pulsify.stream_relations import relate
from tests.backends import BACKENDS
from tests.invariants.graphs import feeds, random_model, random_pulsed, shortest
from tests.invariants.operator_cases import compare_programs

MAX_FRAMES = 5000
REACHED = (
    "Pointwise",
    "Window",
    "Ends",
    "Cumulative",
    "Banded",
    "delay",
    "prefix",
    "rate",
    "several lengths",
    "side input",
)


def note(reached: Counter[str], typed: TypedModel, model: PulsedModel) -> None:
    """Count what a model made the pulsifier do."""
    relations = relate(model.typed, model.symbol).relations.values()
    reached.update({type(relation).__name__ for relation in relations})
    streams = [where.fact.stream for where in model.wires.values() if where.fact.stream is not None]
    reached["delay"] += any(stream.offset > 0 for stream in streams)
    reached["prefix"] += any(stream.offset < 0 for stream in streams)
    reached["rate"] += any(stream.rate != 1 for stream in streams)
    reached["side input"] += any(not port.streams for port in model.inputs)
    reached["nodes"] += len(typed.graph.nodes)


def assert_invariant(seeds: range, backends: tuple[str, ...], depth: int) -> Counter[str]:
    """Check the invariant on random graphs; gives what was reached."""
    reached: Counter[str] = Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        typed, simplified, model = random_pulsed(seed, rng, depth)
        note(reached, simplified, model)
        programs = [compile_model(model, backend) for backend in backends]
        min_length = shortest(typed)
        critical = [length for length in critical_lengths(model, min_length) if length <= MAX_FRAMES]
        reached["critical"] += bool(critical)
        lengths = [min_length, min_length + 1, min_length + int(rng.integers(2, 40))]
        lengths += [critical[int(rng.integers(len(critical)))]] if critical else []
        ran = 0
        for length in lengths:
            ran += compare_programs(typed, programs, feeds(typed, length, rng), (seed, length))
        reached["models"] += 1
        reached["several lengths"] += ran > 1
    return reached


@pytest.mark.filterwarnings("ignore:(invalid|divide by zero|overflow):RuntimeWarning")
def test_random_graphs_stream_as_offline() -> None:
    """The graphs run on both backends and reach every relation."""
    reached = assert_invariant(range(150), BACKENDS, depth=10)
    assert reached["models"] == 150
    assert all(reached[feature] >= 10 for feature in REACHED), reached
    assert reached["Positional"] >= 3
    assert reached["critical"] >= 30


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:(invalid|divide by zero|overflow):RuntimeWarning")
def test_many_random_graphs_stream_as_offline() -> None:
    """They are twenty thousand graphs, deeper than those of the default suite."""
    reached = assert_invariant(range(10_000, 30_000), BACKENDS, depth=14)
    print(dict(reached))
    assert reached["models"] == 20_000


def test_the_refusal_of_a_pulse_names_valid_multiples() -> None:
    """Every model states its smallest pulse, and refuses others by naming a multiple."""
    tried = 0
    for seed in range(80):
        typed = random_model(np.random.default_rng(seed), 12)
        smallest = pulsify(typed).pulse
        if smallest == 1:
            continue
        tried += 1
        with pytest.raises(PulsifyError, match=rf"multiple of {smallest}: use .*{smallest}"):
            pulsify(typed, pulse=smallest + 1)
    assert tried >= 8
