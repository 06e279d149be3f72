"""Random graphs of which random views run on other backends: every frame equals the offline output."""

from collections import Counter

import numpy as np
import pytest

from pulse.graph import View
from pulse.ops.source import Const, Source
from pulse.program.backends.mixed_program import MixedProgram
from pulse.program.compiler import compile_model
from pulse.pulsify.driver import pulsify
from tests.invariants.graphs import feeds, random_model, shortest
from tests.invariants.operator_cases import compare_programs

PAIRS = (("numba", "numpy"), ("numpy", "numba"), ("numba", "onnxruntime"))


@pytest.mark.filterwarnings("ignore:(invalid|divide by zero|overflow):RuntimeWarning")
def test_random_views_do_not_change_what_random_graphs_give() -> None:
    reached: Counter[str] = Counter()
    for seed in range(80):
        rng = np.random.default_rng(seed)
        typed = random_model(rng, int(rng.integers(2, 8)))
        model = pulsify(typed.declutter(), pulse=pulsify(typed.declutter()).pulse * int(rng.integers(1, 4)))
        default, other = PAIRS[seed % len(PAIRS)]
        computing = [node.id for node in model.graph.nodes if not isinstance(node.op, (Source, Const))]
        if not computing or reached["models"] == 60:
            continue
        nodes = {node for node in computing if rng.random() < 0.5} or {computing[-1]}
        model.graph.views = {"some": View(nodes, other)}
        program = compile_model(model, default)
        assert isinstance(program, MixedProgram), seed
        reached["models"] += 1
        reached["parts"] += len(program.parts)
        reached["transfers"] += len(program.transfers)
        reached[other] += other in program.backend
        for length in (shortest(typed), shortest(typed) + int(rng.integers(1, 30))):
            reached["ran"] += compare_programs(typed, [program], feeds(typed, length, rng), (seed, length))
    assert reached["models"] == 60, reached
    assert reached["ran"] >= 100, reached
    assert min(reached[other] for _, other in PAIRS) >= 10, reached
    assert reached["parts"] >= 150, reached
    assert reached["transfers"] >= 120, reached
