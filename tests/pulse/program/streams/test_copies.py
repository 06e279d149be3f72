"""Programs, streams and lanes are pickled and copied as what they mean, never as addresses."""

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pulse import errors
from pulse.errors import CopyError, InputError, LoadError
from pulse.jit import registry
from pulse.jit.registry import KERNELS
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.native_state import NativeState
from pulse.program.streams.state import State
from pulse.pulsify.stream_lengths import longest_stream
from tests.pulse.jit.folders import COMPILING
from tests.pulse.program.programs import (
    FORMS,
    MODELS,
    are_bit_identical,
    block,
    program,
    pulsed_model,
    spawn_and_step,
)
from tests.sources import ROOT

WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda item: pickle.loads(pickle.dumps(item)),
    "oldest pickle": lambda item: pickle.loads(pickle.dumps(item, 2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
kinds = pytest.mark.parametrize(("backend", "form"), FORMS)


def assert_equal_streams(left: State, right: State) -> None:
    """Both streams give the same bits from here to their end."""
    compiled = left.program
    for number in range(3):
        x = block(compiled, compiled.pulse, 10 + number)
        assert are_bit_identical(left.step(x), right.step(x))
    ends = left.flush(block(compiled, 2, 20)), right.flush(block(compiled, 2, 20))
    assert len(ends[0]) == len(ends[1])
    assert all(map(are_bit_identical, *ends))


@kinds
@pytest.mark.parametrize("name", MODELS)
def test_an_unpickled_program_gives_the_same_bits(name: str, backend: str, form: str) -> None:
    compiled = program(name, backend, form)
    other = pickle.loads(pickle.dumps(compiled))
    assert other is not compiled
    assert other.model is not compiled.model
    assert (other.fingerprint, other.limit, other.form) == (
        compiled.fingerprint,
        compiled.limit,
        compiled.form,
    )
    assert_equal_streams(spawn_and_step(compiled), spawn_and_step(other))


def test_weights_and_table_of_an_unpickled_program_are_its_own() -> None:
    compiled = program("matrix")
    other = pickle.loads(pickle.dumps(compiled))
    assert isinstance(compiled, NativeProgram)
    assert isinstance(other, NativeProgram)
    assert other.weights.ctypes.data % 64 == 0
    assert not other.weights.flags.writeable
    assert not np.shares_memory(other.weights, compiled.weights)
    assert np.array_equal(other.table, compiled.table)  # in one process, kernels have one address
    assert other.listing() == compiled.listing()


def test_a_pickle_holds_no_address_of_a_kernel() -> None:
    compiled = program("windows")
    assert isinstance(compiled, NativeProgram)
    text = pickle.dumps(compiled)
    for name in {row.kernel for row in compiled.instructions}:
        assert KERNELS[name].address.to_bytes(8, "little") not in text


@ways
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_a_copied_program_is_the_program_itself(way: Callable[[Any], Any], backend: str) -> None:
    compiled = program("windows", backend)
    first, second = way([compiled, compiled])
    assert first is second
    if way in (copy.copy, copy.deepcopy):
        assert first is compiled


@ways
@kinds
@pytest.mark.parametrize("name", MODELS)
def test_a_copied_stream_continues_independently(
    name: str, backend: str, form: str, way: Callable[[Any], Any]
) -> None:
    compiled = program(name, backend, form)
    state, straight = spawn_and_step(compiled), spawn_and_step(compiled)
    other = way(state)
    x = block(compiled, compiled.pulse, 5)
    for _ in range(3):
        other.step(x)  # neither writes into the other
    other = way(state)
    assert_equal_streams(state, straight)
    assert_equal_streams(other, spawn_and_step(compiled))


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_copied_streams_of_one_program_share_it(way: str) -> None:
    compiled = program("windows")
    first, second = WAYS[way]([spawn_and_step(compiled), spawn_and_step(compiled, 1)])
    assert first.program is second.program
    assert first is not second
    assert (first.program is compiled) == (way == "deepcopy")


def test_fifty_deep_copies_of_a_stream_give_the_same_bits() -> None:
    compiled = program("windows")
    state = spawn_and_step(compiled)
    x = block(compiled, compiled.pulse)
    states = [copy.deepcopy(state) for _ in range(50)]
    expected = states[0].step(x)
    assert all(are_bit_identical(copied.step(x), expected) for copied in states[1:])


def test_the_copy_of_a_stream_that_has_ended_has_ended() -> None:
    state = spawn_and_step(program("windows"))
    state.flush()
    with pytest.raises(InputError, match="has ended"):
        copy.deepcopy(state).step(block(state.program, state.program.pulse))


@ways
@kinds
def test_lanes_are_copied_with_their_places(backend: str, form: str, way: Callable[[Any], Any]) -> None:
    compiled = program("windows", backend, form)
    lanes = compiled.spawn_many(5)
    x = np.stack([block(compiled, compiled.pulse, seed) for seed in range(5)])
    lanes.step(x)
    lanes.leave(2)
    other = way(lanes)
    assert other.active_lanes == lanes.active_lanes == [0, 1, 3, 4]
    assert type(other) is type(lanes)
    other.step(x[:2], [0, 3])
    other = way(lanes)
    for _ in range(3):
        assert are_bit_identical(lanes.step(x[:4]), other.step(x[:4]))
    alone = way(lanes[3])
    assert are_bit_identical(alone.step(x[1]), {name: y[0] for name, y in lanes.step(x[1:2], [3]).items()})


@pytest.mark.parametrize("name", MODELS)
def test_models_of_every_stage_pickle(name: str) -> None:
    model = pulsed_model(name)
    other = pickle.loads(pickle.dumps(model))
    assert other.inputs[0].shape == model.inputs[0].shape
    assert longest_stream(other.symbol, other.typed.scope.assumptions) == longest_stream(
        model.symbol, model.typed.scope.assumptions
    )
    assert_equal_streams(spawn_and_step(other.compile()), spawn_and_step(program(name)))
    typed = pickle.loads(pickle.dumps(model.typed))
    assert_equal_streams(
        spawn_and_step(typed.pulsify(None, model.pulse).compile()), spawn_and_step(program(name))
    )


def test_a_pickle_keeps_the_limit_of_a_narrowed_scope() -> None:
    """``max_context`` makes assumptions of a second scope over the symbols of the first."""
    model = copy.deepcopy(pulsed_model("windows"))
    model.typed.scope = model.typed.scope.with_assumption("T <= 40")
    other = pickle.loads(pickle.dumps(model))
    assert other.typed.scope.symbol("T") == other.symbol
    assert other.compile().limit == model.compile().limit == 40


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pickle.dumps(program("windows"))
    monkeypatch.setattr("pulse.program.program.__version__", "0.0.7")
    with pytest.raises(LoadError, match=r"pickled by pulse .*, and this is pulse 0\.0\.7: compile the model"):
        pickle.loads(text)


def test_a_kernel_that_cannot_be_imported_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pickle.dumps(program("foreign"))
    monkeypatch.delitem(registry.KERNELS, "tests_doubled")
    with pytest.raises(
        LoadError, match=r"kernel tests_doubled: module tests\..*custom_ops does not declare it"
    ):
        pickle.loads(text)
    with pytest.raises(LoadError, match="module nowhere_to_be_found cannot be imported"):
        registry.require_kernels({"tests_doubled": "nowhere_to_be_found"})


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("kind", ["pack", "kernel"])
def test_objects_with_addresses_refuse_copies(kind: str, way: Callable[[object], object]) -> None:
    state = spawn_and_step(program("windows"))
    assert isinstance(state, NativeState)
    item = state.pack() if kind == "pack" else KERNELS["copy"]
    with pytest.raises(CopyError, match="cannot be copied or pickled: it"):
        way(item)


def test_the_error_of_a_copy_is_a_type_error_and_documented() -> None:
    assert issubclass(CopyError, TypeError)
    assert "CopyError" in (errors.__doc__ or "")


CODE = """
import pickle, sys
import numpy as np
state, x = pickle.load(open(sys.argv[1], "rb"))
np.savez(sys.argv[2], **state.step(x))
"""


@pytest.mark.slow
def test_a_process_without_any_kernel_compiles_them(tmp_path: Path) -> None:
    """The stream was pickled by a process that had the kernels."""
    compiled = program("limited")
    state, x = spawn_and_step(compiled), block(compiled, compiled.pulse, 7)
    (tmp_path / "state").write_bytes(pickle.dumps((state, x)))
    environment = {
        **os.environ,
        **COMPILING,
        "PULSE_CACHE": str(tmp_path / "kernels"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-W", "error", "-c", CODE, str(tmp_path / "state"), str(tmp_path / "y.npz")]
    subprocess.run(command, env=environment, check=True, timeout=300)
    with np.load(tmp_path / "y.npz") as archive:
        assert are_bit_identical(dict(archive), state.step(x))
    assert list((tmp_path / "kernels").rglob("*.kernel"))
