"""Cases of every operator with any of its axes as the stream."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

import pulse
from pulse.errors import FactError, InputError, LoadError, PulseError, PulsifyError
from pulse.facts import Array, dtype_name
from pulse.models import PulsedModel, TypedModel
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole
from pulse.pulsify.driver import pulsify
from pulse.runtimes.onnx_runtimes import RuntimeProgram
from tests.agreement import Expected
from tests.pulse.cases.build import Case
from tests.pulse.cases.families import all_cases

Runners = Callable[[PulsedModel, np.random.Generator], Sequence[Program]]
"""The programs that must give what the offline model gives."""


def with_symbol(feeds: Mapping[str, Array], rng: np.random.Generator) -> tuple[dict[str, str], int]:
    """Shapes with T on one axis of one input, and on axes of the same length elsewhere, now and then."""
    name = list(feeds)[int(rng.integers(len(feeds)))]
    shape = feeds[name].shape
    axis = int(rng.integers(len(shape)))
    length = shape[axis]
    specs: dict[str, str] = {}
    for other, array in feeds.items():
        dims = [
            "T"
            if (other == name and index == axis) or (other != name and size == length and rng.random() < 0.5)
            else str(size)
            for index, size in enumerate(array.shape)
        ]
        specs[other] = ",".join([*dims, dtype_name(array.dtype)])
    return specs, length


def with_length(
    feeds: Mapping[str, Array], specs: Mapping[str, str], length: int, rng: np.random.Generator
) -> dict[str, Array]:
    """The inputs with another T, their values repeated in random order."""
    result: dict[str, Array] = {}
    for name, array in feeds.items():
        for axis, dim in enumerate(specs[name].split(",")[:-1]):
            if dim == "T":
                array = np.take(array, rng.integers(0, array.shape[axis], length), axis)
        result[name] = array
    return result


def compare_programs(
    typed: TypedModel, programs: Iterable[Program], feeds: dict[str, Array], context: object
) -> bool:
    """Whether the offline model takes these inputs; then fail unless every program agrees with it."""
    try:
        expected = Expected(typed, feeds)
    except InputError:
        return False
    for program in programs:
        by_runtime = isinstance(program, RuntimeProgram)
        assert_agrees = expected.assert_runtime_agrees if by_runtime else expected.assert_agrees
        assert_agrees(stream_whole(program, feeds), (context, program.backend))
    return True


def takes_softplus(model: PulsedModel) -> bool:
    """Whether a recurrent layer does: onnxruntime's is log(1 + exp(x)), which has lost all digits at x = -17."""
    ops = [node.op.op if isinstance(node.op, RecurrentStream) else node.op for node in model.graph.nodes]
    cells = [op.cell for op in ops if isinstance(op, Recurrent)]
    return any(activation.name == "softplus" for cell in cells for activation in cell.activations)


def attempt(case: Case, runners: Runners, rng: np.random.Generator) -> str:
    """The outcome of one case: refused somewhere, or streamed and equal."""
    name, proto, feeds = case
    candidates = {key: array for key, array in feeds.items() if array.ndim}
    if not candidates:
        return "no axes"
    specs, length = with_symbol(candidates, rng)
    scalars = {key: dtype_name(array.dtype) for key, array in feeds.items() if not array.ndim}
    try:
        typed = pulse.load(proto, inputs={**specs, **scalars}).model.analyse()
    except (LoadError, FactError):
        return "not loaded"
    try:
        model = pulsify(typed.declutter() if rng.random() < 0.5 else typed)
        model = pulsify(typed, pulse=model.pulse * int(rng.integers(1, 4)))
    except PulsifyError as error:
        assert str(error), name
        return "refused"
    except PulseError as error:
        assert "symbol" in str(error), (name, str(error))
        return "refused"
    programs = runners(model, rng)
    ran = False
    for size in dict.fromkeys((length, length + int(rng.integers(1, 12)))):
        values = {**feeds, **with_length(candidates, specs, size, rng)}
        ran |= compare_programs(typed, programs, values, (name, specs, size))
    return "equal" if ran else "no length"


def fuzz(seeds: range, runners: Runners) -> Counter[str]:
    """Try random cases; gives how they ended."""
    outcomes: Counter[str] = Counter()
    cases = all_cases()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        outcomes[attempt(cases[int(rng.integers(len(cases)))], runners, rng)] += 1
    return outcomes
