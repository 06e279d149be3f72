"""After an exception at any place, a stream is as it was before the call, or says that it has to be reset."""

import copy
import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from pulse.errors import CopyError, InputError
from pulse.facts import Array
from pulse.program.program import Program
from pulse.program.streams.state import State
from pulse.runtimes.onnx_runtimes import RuntimeProgram, open_runtime
from streaming import Session
from tests.interrupted_streams import are_equal_outputs, count_outcomes
from tests.interruption import Unit, everywhere, interrupt_call
from tests.pulse.program.custom_ops import TooLoudError
from tests.pulse.program.programs import (
    are_bit_identical,
    block,
    constants,
    program,
    pulsed_model,
    spawn_and_step,
)

UNITS = [
    ("numba", "line", 1),
    ("numba", "opcode", 37),
    pytest.param("numba", "opcode", 1, marks=pytest.mark.slow),
    ("numpy", "line", 13),
    ("numpy", "opcode", 193),
]
"""Backend; whether calls are interrupted after lines or opcodes; and the step from one to the next."""
units = pytest.mark.parametrize(("backend", "unit", "step"), UNITS)
REFUSAL = r"inside pulse \d+: begin a new one with reset\(\), or restore\(\) a snapshot"


def outcomes(
    compiled: Program, call: Callable[[State], Any], unit: Unit, step: int, after: Callable[[State], Any]
) -> Counter[str]:
    """Counts of streams that continued after an interrupted third call, and of those that had to be reset."""
    saved = spawn_and_step(compiled, 2).snapshot()

    def begin() -> State:
        state = compiled.spawn(constants(compiled))
        state.restore(saved)
        return state

    return count_outcomes(begin, call, after, unit, step, refusal=REFUSAL)


@units
@pytest.mark.parametrize("name", ["windows", "constant"])
def test_an_interrupted_step_is_undone_or_refused(name: str, backend: str, unit: Unit, step: int) -> None:
    compiled = program(name, backend)
    x, more = block(compiled, compiled.pulse, 5), block(compiled, 3, 6)
    counts = outcomes(compiled, lambda state: state.step(x), unit, step, lambda state: state.flush(more))
    assert counts["as before"]
    assert counts["refused"] or step > 1


@units
def test_an_interrupted_step_into_arrays_is_undone_or_refused(backend: str, unit: Unit, step: int) -> None:
    compiled = program("windows", backend)
    x, more = block(compiled, compiled.pulse, 5), block(compiled, 3, 6)

    def call(state: State) -> dict[str, Array]:
        outputs = {port.name: np.zeros(port.shape, port.dtype) for port in compiled.outputs}
        state.step(x, outputs)
        return outputs

    counts = outcomes(compiled, call, unit, step, lambda state: state.flush(more))
    assert counts["as before"]
    assert counts["refused"] or step > 1


@units
def test_an_interrupted_flush_is_undone(backend: str, unit: Unit, step: int) -> None:
    compiled = program("windows", backend)
    rest = block(compiled, 3, 5)
    counts = outcomes(compiled, lambda state: state.flush(rest), unit, step, lambda state: [])
    assert counts["as before"]
    assert not counts["refused"]


@pytest.mark.parametrize("call", ["reset", "restore"])
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_an_interrupted_reset_or_restore_can_be_repeated(backend: str, call: str) -> None:
    compiled = program("windows", backend)
    x, saved = block(compiled, compiled.pulse, 5), spawn_and_step(compiled, 1).snapshot()
    fresh = compiled.spawn()
    if call == "restore":
        fresh.restore(saved)
    expected = fresh.step(x)
    states: list[State] = []

    def begin() -> Callable[[], object]:
        states.append(spawn_and_step(compiled, 2))
        return states[-1].reset if call == "reset" else lambda: states[-1].restore(saved)

    straight = spawn_and_step(compiled, 2)
    unchanged = straight.step(x)
    for _ in everywhere(begin, "opcode"):
        state = states[-1]
        try:
            outputs = state.step(x)
            assert are_bit_identical(outputs, unchanged) or are_bit_identical(
                outputs, expected
            )  # not begun, or done
        except InputError as error:
            assert "reset()" in str(error)
        state.reset() if call == "reset" else state.restore(saved)
        assert are_bit_identical(state.step(x), expected)


def test_a_callback_that_raises_in_flush_changes_nothing() -> None:
    compiled = program("windows")
    state, straight = spawn_and_step(compiled, 2), spawn_and_step(compiled, 2)

    def fail() -> None:
        raise TooLoudError

    with pytest.raises(TooLoudError):
        state.flush(after=fail)
    x = block(compiled, compiled.pulse, 9)
    assert are_bit_identical(state.step(x), straight.step(x))
    assert are_equal_outputs(state.flush(), straight.flush())


def test_an_operation_that_raises_changes_nothing() -> None:
    """The operation has written into its state before it raises."""
    compiled = program("failing", "numpy")
    state, straight = spawn_and_step(compiled, 2), spawn_and_step(compiled, 2)
    x = block(compiled, compiled.pulse, 3)
    loud = x.copy()
    loud[..., 2] = 1e9
    before = state.snapshot()
    with pytest.raises(TooLoudError):
        state.step(loud)
    assert state.snapshot() == before
    with pytest.raises(TooLoudError):
        state.flush(loud[..., :3])
    assert state.snapshot() == before
    assert are_bit_identical(state.step(x), straight.step(x))


def test_a_push_that_raises_in_a_runtime_is_undone() -> None:
    model = pulsed_model("windows")
    proto = model.to_onnx()
    run = open_runtime(proto).run
    loud = Counter[str]()

    def run_or_raise(feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        loud["calls"] += 1
        if loud["calls"] == loud["fails"]:
            raise TooLoudError
        return run(feeds)

    compiled = RuntimeProgram(model, proto, run_or_raise)
    session, straight = Session(compiled), Session(compiled)
    x = block(compiled, 4 * compiled.pulse)
    session.push(x)
    straight.push(x)
    loud["fails"] = loud["calls"] + 3
    before = session.snapshot()
    with pytest.raises(TooLoudError):
        session.push(x)
    assert session.snapshot() == before
    other = copy.deepcopy(session)
    expected = straight.push(x)
    assert are_bit_identical(session.push(x), expected)
    assert are_bit_identical(other.push(x), expected)
    with pytest.raises(CopyError, match="open in a runtime of this process"):
        pickle.dumps(session)


@units
@pytest.mark.parametrize("chosen", [None, [3, 0, 1]])
def test_interrupted_lanes_are_undone_or_refused(
    backend: str, unit: Unit, step: int, chosen: list[int] | None
) -> None:
    """Those that step are as they were, or refuse one by one; the others continue in any case."""
    compiled = program("windows", backend)
    counts: Counter[str] = Counter()
    x = np.stack([block(compiled, compiled.pulse, seed) for seed in range(5)])
    stepped = list(range(5)) if chosen is None else chosen
    straight = compiled.spawn_many(5)
    straight.step(x)
    expected = straight.step(x[: len(stepped)], chosen), straight.step(x)
    lanes = compiled.spawn_many(5)
    fresh = [lane.snapshot() for lane in lanes]
    begun_lanes = compiled.spawn_many(5)
    begun_lanes.step(x)
    saved = [lane.snapshot() for lane in begun_lanes]

    def begin() -> Callable[[], object]:
        for lane, snapshot in zip(lanes, saved, strict=True):
            lane.restore(snapshot)
        return lambda: lanes.step(x[: len(stepped)], chosen)

    for _ in everywhere(begin, unit, step * 5):
        try:
            again = lanes.step(x[: len(stepped)], chosen)
            counts["as before"] += 1
        except InputError as error:
            assert str(error).startswith("lane ")
            assert "reset()" in str(error)
            counts["refused"] += 1
            for number in stepped:
                with pytest.raises(InputError, match=REFUSAL):
                    lanes[number].snapshot()
                lanes[number].restore(saved[number])
            again = lanes.step(x[: len(stepped)], chosen)
        assert are_bit_identical(again, expected[0])
        assert are_bit_identical(lanes.step(x), expected[1])
    assert counts["as before"]
    assert counts["refused"] or backend == "numpy"
    assert fresh != saved  # else a lane that was reset would pass for a restored one


def test_a_lane_that_raises_does_not_change_the_others() -> None:
    compiled = program("failing", "numpy")
    lanes, straight = compiled.spawn_many(3), compiled.spawn_many(3)
    x = np.stack([block(compiled, compiled.pulse, seed) for seed in range(3)])
    loud = x.copy()
    loud[1] = 1e9
    with pytest.raises(TooLoudError):
        lanes.step(loud)
    assert are_bit_identical(lanes.step(x), straight.step(x))


def test_an_interrupted_join_or_leave_is_done_or_not_begun() -> None:
    """The existing lanes continue with the bits that they have without it."""
    compiled = program("windows")
    x = np.stack([block(compiled, compiled.pulse, seed) for seed in range(3)])
    straight = compiled.spawn_many(3)
    first, second = straight.step(x), straight.step(x)
    for call in ("join", "leave"):
        for number in range(1, 400):
            lanes = compiled.spawn_many(3)
            lanes.step(x)
            lanes.leave(2)
            change = lanes.join if call == "join" else lambda: lanes.leave(1)  # noqa: B023
            interrupted = interrupt_call(change, "opcode", number)
            active = list(lanes.active_lanes)
            assert active in ([0, 1], [0, 1, 2] if call == "join" else [0])
            for name, output in lanes.step(x[active]).items():
                expected = [first[name][lane] if lane == 2 else second[name][lane] for lane in active]
                assert np.array_equal(output, expected), (call, number, name)
            if not interrupted:
                break
        else:
            pytest.fail("the call never ended")
