"""Any operator, any of its axes made the stream: a right answer or a clean refusal, never anything else."""

import importlib
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import CompileError, FactError, InputError, LoadError, PulseError, PulsifyError
from pulse.facts import Array, dtype_name
from pulse.program.compiler import BACKENDS, compile_model
from pulse.program.whole import run_whole
from pulse.proof import close
from pulse.pulsify.driver import pulsify
from tests.pulse.program.test_runners import FAMILIES

Case = tuple[str, Any, dict[str, Array]]


@cache
def all_cases() -> list[Case]:
    """Every operator case of every family."""
    return [
        case
        for family in FAMILIES
        for generator in importlib.import_module(f"tests.pulse.cases.{family}").ALL
        for case in generator()
    ]


def with_symbol(feeds: dict[str, Array], rng: np.random.Generator) -> tuple[dict[str, str], int]:
    """Shapes with T on one axis of one input, and on axes of the same length elsewhere, now and then."""
    name = list(feeds)[int(rng.integers(len(feeds)))]
    shape = feeds[name].shape
    axis = int(rng.integers(len(shape)))
    length = shape[axis]
    specs: dict[str, str] = {}
    for other, array in feeds.items():
        dims = [
            "T"
            if (other == name and at == axis) or (other != name and size == length and rng.random() < 0.5)
            else str(size)
            for at, size in enumerate(array.shape)
        ]
        specs[other] = ",".join([*dims, dtype_name(array.dtype)])
    return specs, length


def lengthened(
    feeds: dict[str, Array], specs: dict[str, str], length: int, rng: np.random.Generator
) -> dict[str, Array]:
    """The inputs with another T, their values repeated in random order."""
    result: dict[str, Array] = {}
    for name, array in feeds.items():
        for axis, dim in enumerate(specs[name].split(",")[:-1]):
            if dim == "T":
                array = np.take(array, rng.integers(0, array.shape[axis], length), axis)
        result[name] = array
    return result


def attempt(case: Case, rng: np.random.Generator) -> str:
    """What became of one case: refused somewhere, or streamed and equal."""
    name, proto, feeds = case
    if not any(array.ndim for array in feeds.values()):
        return "no axes"
    candidates = {key: array for key, array in feeds.items() if array.ndim}
    specs, length = with_symbol(candidates, rng)
    scalars = {key: dtype_name(array.dtype) for key, array in feeds.items() if not array.ndim}
    try:
        typed = pulse.load(proto, inputs={**specs, **scalars}).analyse()
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
    programs = []
    for backend in BACKENDS:
        try:
            programs.append(compile_model(model, backend))
        except CompileError:
            continue
    ran = "no length"
    for size in {length, length + int(rng.integers(1, 12))}:
        values = {**feeds, **lengthened(candidates, specs, size, rng)}
        try:
            with np.errstate(all="ignore"):
                offline = typed.run(values)
        except InputError:
            continue
        for program in programs:
            sides = {port.name: values[port.name] for port in program.inputs if not port.streams}
            streamed, _ = run_whole(program.spawn(sides), values, np.nan)
            for output, expected in offline.items():
                got = streamed[output]
                assert got.shape == expected.shape, (name, specs, size, program.backend, output)
                assert close(got, expected), (name, specs, size, program.backend, output)
        ran = "equal"
    return ran


def fuzz(seeds: range) -> Counter[str]:
    """Try random cases; gives how they ended."""
    found: Counter[str] = Counter()
    cases = all_cases()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        found[attempt(cases[int(rng.integers(len(cases)))], rng)] += 1
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_some_fuzzed_models() -> None:
    """Hundreds; every ending is reached."""
    found = fuzz(range(400))
    assert found["equal"] >= 100, found
    assert found["refused"] >= 20, found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_fuzzed_models() -> None:
    """Ten thousand."""
    found = fuzz(range(1_000, 11_000))
    print(dict(found))
    assert sum(found.values()) == 10_000
