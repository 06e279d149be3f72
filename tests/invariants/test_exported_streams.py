"""The invariant for files: what a pulsed model becomes in ONNX gives, in onnxruntime and read back, what is offline."""

from collections import Counter

import numpy as np
import pytest
from onnx import ModelProto

from pulse.errors import WriteError
from pulse.models import PulsedModel
from pulse.onnx.write.model import to_onnx
from pulse.program.program import Program
from pulse.runtimes.onnx_runtimes import RuntimeProgram
from tests.backends import BACKENDS
from tests.invariants.backends import backends
from tests.invariants.graphs import feeds, random_pulsed, shortest
from tests.invariants.operator_cases import compare_programs, fuzz, takes_softplus
from tests.pulse.onnx.write.file_proof import read_metadata, reopen


def note(reached: Counter[str], proto: ModelProto) -> None:
    """Count what a file has to do."""
    metadata = read_metadata(proto)
    reached["end"] += metadata.end is not None
    reached["causal"] += metadata.end is None
    reached["pulses"] += any(state.input == "pulses" for state in metadata.states)
    reached["initial"] += any(state.initial for state in metadata.states)
    reached["states"] += len(metadata.states)
    reached.update(node.op_type for node in proto.graph.node)


def assert_invariant(seeds: range, depth: int, read_back: int) -> Counter[str]:
    """Random graphs; every ``read_back``-th is read back and run by both backends too."""
    reached: Counter[str] = Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        typed, _, model = random_pulsed(seed, rng, depth)
        proto = to_onnx(model)
        programs: list[Program] = [RuntimeProgram(model, proto)]
        if seed % read_back == 0:
            back = reopen(proto)
            programs += [back.compile(backend) for backend in BACKENDS]
            reached["read back"] += 1
        note(reached, proto)
        min_length = shortest(typed)
        for length in (min_length, min_length + int(rng.integers(1, 40))):
            reached["streams"] += compare_programs(typed, programs, feeds(typed, length, rng), (seed, length))
        reached["files"] += 1
    return reached


def files(model: PulsedModel, rng: np.random.Generator) -> list[Program]:
    """The file in onnxruntime, where it is exact; of one in five also what is read back."""
    try:
        proto = to_onnx(model)
    except WriteError as error:  # an operator that is newer than the default opset
        assert "try another opset" in str(error)
        proto = to_onnx(model, 18)
    programs: list[Program] = [] if takes_softplus(model) else [RuntimeProgram(model, proto)]
    return [*programs, *backends(reopen(proto), rng)] if rng.random() < 0.2 else programs


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_exported_random_graphs_agree_with_their_streams() -> None:
    """Some files have a clock, and some have states that do not begin as zeros."""
    reached = assert_invariant(range(90), depth=10, read_back=6)
    assert reached["files"] == 90
    assert reached["streams"] >= 170
    assert min(reached[feature] for feature in ("end", "causal", "pulses", "initial", "read back")) >= 8, (
        reached
    )
    assert (
        min(reached[feature] for feature in ("Concat", "Gather", "Where", "Conv", "Softmax", "CumSum")) >= 5
    ), reached
    assert reached["RNN"] + reached["GRU"] + reached["LSTM"] >= 10


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_exported_operator_cases_agree_or_are_refused() -> None:
    """A few hundred cases; some are equal and some are refused."""
    outcomes = fuzz(range(250), files)
    assert outcomes["equal"] >= 100, outcomes
    assert outcomes["refused"] >= 20, outcomes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_exported_random_graphs_agree_with_their_streams() -> None:
    """They are five thousand graphs of depth 14."""
    reached = assert_invariant(range(50_000, 55_000), depth=14, read_back=3)
    print(dict(reached))
    assert reached["files"] == 5_000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_exported_operator_cases_agree_or_are_refused() -> None:
    """They are ten thousand operator cases as files."""
    outcomes = fuzz(range(100_000, 110_000), files)
    print(dict(outcomes))
    assert sum(outcomes.values()) == 10_000
