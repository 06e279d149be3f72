"""A pulse as one compiled call: it is made where it can be, and where it cannot, the result is the same."""

import gc
import sys
import weakref

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.compiler import compile_model
from pulse.program.machine.python_objects import arrays_are_known
from pulse.program.native import native_state
from pulse.program.program import Program
from pulse.pulsify.driver import pulsify
from tests.pulse.model_builder import ModelBuilder

F = np.float32


def neg() -> Program:
    builder = ModelBuilder(x="1,2,T")
    return compile_model(pulsify(builder.model(builder.apply("neg", builder["x"], name="y")), pulse=4))


def crossed_program() -> Program:
    """A program with two inputs and two outputs."""
    builder = ModelBuilder(x="1,2,T", z="1,2,T")
    total = builder.apply("add", builder["x"], builder["z"], name="total")
    return compile_model(
        pulsify(
            builder.model(total, builder.apply("sub", builder["x"], builder["z"], name="difference")), pulse=4
        )
    )


def pulse_of_noise(seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((1, 2, 4)).astype(F)


class Derived(np.ndarray[tuple[int, ...], np.dtype[np.float32]]):
    """A subclass of the array type."""


def unaligned_copy(x: Array) -> Array:
    memory = np.zeros(x.nbytes + 1, np.uint8)[1:]
    array: Array = memory.view(x.dtype).reshape(x.shape)
    array[...] = x
    return array


def test_the_layout_of_numpys_arrays_is_the_one_that_is_read() -> None:
    assert arrays_are_known()


def test_a_stream_is_linked_before_its_first_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    """``spawn`` makes the compiled call: linking it takes milliseconds in a new process."""

    def refuse(*_: object) -> None:
        pytest.fail("the call is made in the first pulse")

    state, x = neg().spawn(), pulse_of_noise()
    monkeypatch.setattr(native_state, "array_step", refuse)
    assert np.array_equal(state.step(x)["y"], -x)


def test_plain_arrays_take_the_compiled_call() -> None:
    state, x, y = neg().spawn(), pulse_of_noise(), np.zeros((1, 2, 4), F)
    for feed in (x, {"x": x}):
        ready = state.try_step(feed, None, False)
        assert ready is not None
        assert np.array_equal(ready["y"], -x)
        for outputs in (y, {"y": y}):
            y[...] = 0
            into = state.try_step(feed, outputs, False)
            assert into is not None
            assert into["y"] is y
            assert np.array_equal(y, -x)
    assert state.clock.pulse == 6


def test_several_inputs_and_outputs_may_come_in_any_order() -> None:
    state, x, z = crossed_program().spawn(), pulse_of_noise(1), pulse_of_noise(2)
    outputs = {"difference": np.zeros_like(x), "total": np.zeros_like(x)}
    for ready in (
        state.try_step({"z": z, "x": x}, None, False),
        state.try_step({"x": x, "z": z}, outputs, False),
    ):
        assert ready is not None
        assert np.array_equal(ready["total"], x + z)
        assert np.array_equal(ready["difference"], x - z)
    assert np.array_equal(outputs["difference"], x - z)
    assert state.try_step({"x": x}, None, False) is None
    assert state.try_step(x, None, False) is None
    assert state.try_step({"x": x, "z": z}, x, False) is None
    assert state.clock.pulse == 2


@pytest.mark.parametrize(
    "other_array",
    [
        np.asfortranarray(pulse_of_noise()),
        np.repeat(pulse_of_noise(), 2, axis=2)[..., ::2],
        pulse_of_noise().astype(">f4"),
        unaligned_copy(pulse_of_noise()),
        pulse_of_noise().view(Derived),
    ],
    ids=["order", "strides", "bytes", "alignment", "class"],
)
def test_arrays_of_other_layouts_are_never_read_as_plain_ones(other_array: Array) -> None:
    """Strided, derived ones and so on: never read as if they were plain."""
    state, x = neg().spawn(), pulse_of_noise()
    assert state.try_step(other_array, None, False) is None
    assert state.try_step(x, other_array, False) is None
    if type(other_array) is np.ndarray and other_array.dtype == F:
        assert np.array_equal(state.step(other_array)["y"], -x)
        assert np.array_equal(state.step(x, other_array)["y"], -x)
        assert np.array_equal(other_array, -x)
    else:
        with pytest.raises(InputError, match="expected an array for the output y"):
            state.step(x, other_array)


def test_arrays_that_cannot_be_written_are_refused() -> None:
    state, x = neg().spawn(), pulse_of_noise()
    before = state.snapshot()
    locked = np.zeros_like(x)
    locked.flags.writeable = False
    assert state.try_step(x, locked, False) is None
    with pytest.raises(InputError, match="the array for the output y cannot be written"):
        state.step(x, locked)
    assert state.snapshot() == before
    outputs = state.try_step(locked, None, False)  # it is read
    assert outputs is not None
    assert np.array_equal(outputs["y"], -locked)


@pytest.mark.parametrize("place", range(pulse_of_noise().size))
def test_nan_in_any_element_is_refused_on_demand(place: int) -> None:
    state, bad = neg().spawn(), pulse_of_noise()
    bad.flat[place] = np.nan
    before = state.snapshot()
    assert state.try_step(bad, None, True) is None
    assert state.snapshot() == before


@pytest.mark.parametrize(("value", "refuses_nan"), [(np.inf, True), (np.nan, False)])
def test_infinities_pass_and_nan_does_if_it_is_not_refused(value: float, refuses_nan: bool) -> None:
    x = np.full_like(pulse_of_noise(), value)
    outputs = neg().spawn().try_step(x, None, refuses_nan)
    assert outputs is not None
    np.testing.assert_array_equal(outputs["y"], -x)


def test_a_step_keeps_the_reference_counts_of_arrays() -> None:
    """Arrays live as long as the caller keeps them."""
    for program in (neg(), crossed_program()):
        state = program.spawn()
        feed = {port.name: pulse_of_noise() for port in program.inputs}
        outputs = {port.name: np.zeros(port.shape, F) for port in program.outputs}
        watched = [weakref.ref(array) for array in (*feed.values(), *outputs.values())]
        counts = [sys.getrefcount(reference()) for reference in watched]
        for _ in range(100):
            state.step(feed, outputs)
        assert [sys.getrefcount(reference()) for reference in watched] == counts
        feed.clear()
        outputs.clear()
        gc.collect()
        assert not any(reference() is not None for reference in watched)


def test_no_call_leaks_a_reference() -> None:
    """New outputs belong to the caller, and refused calls leave nothing behind."""
    state, x = crossed_program().spawn(), pulse_of_noise()
    bad = np.full_like(x, np.nan)
    shared: list[object] = [None, x.dtype, "total", np.ndarray, dict, x, bad]
    calls = [
        lambda: state.try_step({"x": x, "z": x}, None, True),
        lambda: state.try_step({"x": x, "z": bad}, None, True),
        lambda: state.try_step({"x": x, "z": x[0]}, None, False),
        lambda: state.try_step({"x": x}, None, False),
        lambda: state.try_step({"x": x, "z": x}, {"total": x, "other": x}, False),
    ]
    for call in calls:
        before = [sys.getrefcount(item) for item in shared]
        for _ in range(1000):
            call()
        growth = [sys.getrefcount(item) - count for item, count in zip(shared, before)]
        assert max(map(abs, growth)) < 100, growth


def test_a_call_from_inside_of_a_call_is_refused() -> None:
    """The lookup of a name may run code of the dict's keys; there the stream is in a pulse already."""
    state, x = neg().spawn(), pulse_of_noise()
    refused: list[str] = []

    class Key(str):
        """Equal to nothing, with the hash of the port's name."""

        def __hash__(self) -> int:
            return hash("x")

        def __eq__(self, other: object) -> bool:
            try:
                state.step(x)
            except InputError as error:
                refused.append(str(error))
            return False

    assert state.try_step({Key("z"): x}, None, False) is None
    assert refused
    assert "pulse 0" in refused[0]
    assert np.array_equal(state.step(x)["y"], -x)
    assert state.clock.pulse == 1


def test_nothing_runs_after_the_end_or_in_a_stream_that_was_left() -> None:
    state, x = neg().spawn(), pulse_of_noise()
    state.changing = True
    assert state.try_step(x, None, False) is None
    state.changing = False
    state.step(x)
    state.flush()
    assert state.try_step(x, None, False) is None
