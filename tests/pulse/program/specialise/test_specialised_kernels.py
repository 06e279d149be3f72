"""Specialised kernels: the same bits, put into the table while streams run, kept, bounded, and only where they gain."""

import pickle
import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

import pulse
from pulse.errors import CompileError, InputError
from pulse.facts import Array
from pulse.jit.codegen import specialised_code
from pulse.jit.registry import KERNELS
from pulse.jit.specialised_functions import specialised_functions
from pulse.models import TypedModel
from pulse.program.file.stored_program import read_program
from pulse.program.native.native_program import NativeProgram
from pulse.program.specialise import kernel_rows, specialised_kernels
from pulse.program.specialise.kernel_rows import rows_by_kernel
from pulse.program.specialise.outcome import Specialisation
from pulse.program.specialise.trial import SpecialisationTrial
from pulse.program.table.table import link
from tests.pulse.cases.families import FAMILIES, cases, newest_cases
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.programs import are_bit_identical, block, program
from tests.pulse.program.static_models import fixed_specs, static_model

PULSES = 12


def layers() -> TypedModel:
    """Convolutions of several shapes, elementwise functions and copies."""
    builder = ModelBuilder(x="1,12,T")
    wide = builder.conv(builder["x"], 3, (2, 0), dilation=1, name="wide")
    far = builder.conv(builder.apply("tanh", wide), 2, (3, 0), dilation=3, name="far")
    return builder.model(builder.apply("mul", builder.apply("add", far, wide), far, name="y"))


def fresh() -> NativeProgram:
    compiled = layers().pulsify(None, 4).compile()
    assert isinstance(compiled, NativeProgram)
    return compiled


def outputs(compiled: pulse.Program, seed: int = 3) -> list[dict[str, Array]]:
    state = compiled.spawn()
    return [state.step(block(compiled, compiled.pulse, seed + number)) for number in range(PULSES)]


def refuse(*_: object) -> None:
    pytest.fail("nothing is compiled")


@pytest.fixture
def every_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine measures anything: take specialised kernels however fast they are."""
    for name in ("MIN_GAIN", "MIN_KERNEL_GAIN", "MIN_SHARE"):
        monkeypatch.setattr(specialised_kernels, name, 0.0)


@pytest.mark.usefixtures("every_gain")
def test_specialised_kernels_replace_all_rows_bit_identically() -> None:
    generic, special = fresh(), fresh()
    report = special.specialise()
    assert report.used
    assert report.reason == ""
    assert report.rows == report.total == special.row_count
    assert set(report.kernels) == {rows.kernel.name for rows in rows_by_kernel(special.unlinked)}
    assert 0 < report.nbytes < 1e6
    assert report.gain > 0
    assert f"{report.rows} of {report.rows} instructions" in str(report)
    starts = [
        start
        for rows in rows_by_kernel(special.unlinked)
        for starts_of_words in rows.starts.values()
        for start in starts_of_words
    ]
    assert starts
    assert all(special.table[start] != generic.table[start] for start in starts)
    for left, right in zip(outputs(generic), outputs(special)):
        assert are_bit_identical(left, right)


class WatchedTable(np.ndarray):
    """A table that calls ``after_write`` after each word that is written to it."""

    after_write: Callable[[], None]

    def __setitem__(self, key: object, value: object) -> None:
        super().__setitem__(key, value)
        self.after_write()


class SteppedPair:
    """A stream of a program, and one of the same program with generic rows: both get the same pulses."""

    def __init__(self, compiled: NativeProgram) -> None:
        self.steps = 0
        self._compiled = compiled
        self._state, self._generic = compiled.spawn(), fresh().spawn()

    def step(self) -> None:
        x = block(self._compiled, self._compiled.pulse, self.steps)
        assert are_bit_identical(self._state.step(x), self._generic.step(x))
        self.steps += 1


@pytest.mark.usefixtures("every_gain")
def test_each_row_may_be_replaced_between_steps() -> None:
    """The stream runs every partly specialised table."""
    compiled = fresh()
    compiled.table = compiled.table.view(WatchedTable)
    pair, others = SteppedPair(compiled), compiled.spawn_many(3)
    compiled.table.after_write = pair.step
    report = compiled.specialise()
    assert pair.steps == report.rows == compiled.row_count
    pair.step()
    x = block(compiled, compiled.pulse, 3)
    (lanes,), (expected,) = others.step(np.stack([x] * 3)).values(), fresh().spawn().step(x).values()
    assert all(np.array_equal(lane, expected) for lane in lanes)


@pytest.mark.usefixtures("every_gain")
def test_rows_replaced_while_a_stream_runs_give_the_same_bits() -> None:
    """The stream steps until all rows are replaced, and a few times after it."""
    compiled = fresh()
    pair, thread = SteppedPair(compiled), threading.Thread(target=compiled.specialise)
    thread.start()
    while thread.is_alive():
        pair.step()
    assert compiled.specialised_kernels
    for _ in range(3):
        pair.step()


@pytest.mark.usefixtures("every_gain")
def test_files_and_pickles_use_the_code_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = fresh()
    compiled.specialise()
    monkeypatch.setattr(specialised_code, "specialised_code", refuse)
    again = fresh()
    assert again.specialise().used
    for other in (
        read_program(compiled.to_bytes()),
        pickle.loads(pickle.dumps(compiled)),
        compiled.with_threads(1),
    ):
        assert other.specialised_kernels == compiled.specialised_kernels
        assert not np.array_equal(other.table, link(other.unlinked))
        assert all(are_bit_identical(left, right) for left, right in zip(outputs(compiled), outputs(other)))


def test_a_file_only_names_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the folder of this user does not have their code, the program of the file runs with generic rows."""
    compiled = fresh()
    compiled.specialised_kernels = tuple(rows.kernel.name for rows in rows_by_kernel(compiled.unlinked))
    content = compiled.to_bytes()
    requests: list[bool] = []

    def nothing_kept(_kernel: object, _rows: object, compiles: bool) -> None:
        requests.append(compiles)

    monkeypatch.setattr(kernel_rows, "specialised_functions", nothing_kept)
    other = read_program(content)
    assert np.array_equal(other.table, link(other.unlinked))
    assert set(requests) == {False}
    assert all(are_bit_identical(left, right) for left, right in zip(outputs(compiled), outputs(other)))


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1.0, -1.0)])
def test_bounds_that_are_too_small_change_nothing(
    monkeypatch: pytest.MonkeyPatch, bounds: tuple[float, float]
) -> None:
    monkeypatch.setattr(specialised_code, "specialised_code", refuse)
    compiled = fresh()
    before = compiled.table.copy()
    report = compiled.specialise(*bounds)
    assert (report.used, report.rows, report.nbytes, report.kernels) == (False, 0, 0, ())
    assert str(report).startswith("not used: a step is ")
    assert np.array_equal(compiled.table, before)
    assert compiled.specialised_kernels == ()


def test_rows_without_a_gain_are_not_replaced() -> None:
    compiled = fresh()
    before = compiled.table.copy()
    report = compiled.specialise(min_gain=100.0)
    assert not report.used
    assert "less than 100.0 is not worth it" in str(report)
    assert np.array_equal(compiled.table, before)
    assert compiled.specialised_kernels == ()


@pytest.mark.usefixtures("every_gain")
def test_stream_specialises_on_request() -> None:
    compiled = pulse.stream(layers(), pulse=4, specialise=True)
    assert isinstance(compiled, NativeProgram)
    assert compiled.specialised_kernels


def test_the_gain_is_the_ratio_of_the_times_of_a_step() -> None:
    assert Specialisation("x", (), 0, 3, 2e-6, 1e-6, 1.0, 0).gain == 2.0


def test_specialising_without_rows_is_refused() -> None:
    with pytest.raises(InputError, match="numpy backend has no kernels to specialise; use the numba backend"):
        program("windows", "numpy").specialise()


@pytest.mark.parametrize("gain", [0.9, float("nan")])
def test_specialising_with_an_invalid_gain_is_refused(gain: float) -> None:
    with pytest.raises(
        InputError, match=f"min_gain={gain}: the minimum speed-up of a step is a number from 1"
    ):
        program("windows").specialise(min_gain=gain)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_specialised_kernels_of_all_operators_leave_equal_bytes(family: str) -> None:
    """The bytes of the state and of the arena are compared too."""
    programs: list[NativeProgram] = []
    for _, proto, feeds in newest_cases(cases(family)):
        typed = pulse.load(proto, inputs=fixed_specs(feeds)).model.analyse()
        with suppress(CompileError):
            programs.append(NativeProgram(static_model(typed)))
    tables = [link(compiled.unlinked) for compiled in programs]
    expected: dict[str, set[tuple[int, ...]]] = {}
    for compiled in programs:
        for rows in rows_by_kernel(compiled.unlinked):
            expected.setdefault(rows.kernel.name, set()).update(rows.starts)
    for name, every in expected.items():
        words = sorted(every)
        functions = specialised_functions(KERNELS[name], words, compiles=True)
        assert functions is not None
        addresses = dict(zip(words, functions.addresses))
        for compiled, table in zip(programs, tables):
            for rows in (rows for rows in rows_by_kernel(compiled.unlinked) if rows.kernel.name == name):
                for row_words, starts in rows.starts.items():
                    table[starts] = addresses[row_words]
    assert programs
    differing = [
        compiled.model.title
        for compiled, table in zip(programs, tables)
        if not SpecialisationTrial(compiled).agree(compiled.table, table)
    ]
    assert not differing
