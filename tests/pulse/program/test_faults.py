"""Values for which a node has no result: offline, in streams of both backends, in lanes, in a proof."""

import numpy as np
import pytest

from pulse.errors import FaultError, InputError
from pulse.ops.gather import Gather
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import stream_whole
from pulse.proof import ProofChoice
from pulse.proof.prover import prove
from pulse.pulsify.driver import pulsify
from tests.backends import BACKENDS
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.faulty_models import CASES, I64, ROWS, faulty, gather, lookup, programs, table


@pytest.mark.parametrize("name", CASES)
def test_each_op_reports_its_faults(name: str) -> None:
    """Well inputs stream as before; one value without a result raises offline and in the stream, wherever it is."""
    typed, feeds, value = CASES[name]()
    (expected,) = typed.run(feeds).values()
    for program in programs(typed, 1, 4):
        np.testing.assert_array_equal(stream_whole(program, feeds)[typed.graph.output_names[0]], expected)
    for frames in ((0,), (11,), (28,), (3, 17)):
        wrong = faulty(typed, feeds, value, *frames)
        with pytest.raises(FaultError, match=r"^the ") as offline:
            typed.run(wrong)
        assert [(fault.node, fault.count) for fault in offline.value.faults] == [("the", len(frames))]
        for program in programs(typed, 4, 16):
            with pytest.raises(FaultError, match=r"^the .*in pulse"):
                stream_whole(program, wrong)


@pytest.mark.parametrize("name", CASES)
def test_faults_of_a_stream_that_only_counts_are_those_offline(name: str) -> None:
    """A stream that only counts faults has the offline counts at the end, in both backends."""
    typed, feeds, value = CASES[name]()
    wrong = faulty(typed, feeds, value, 2, 5, 28)
    with pytest.raises(FaultError, match=r"^the ") as offline:
        typed.run(wrong)
    for program in programs(typed, 1, 4):
        state = program.spawn()
        state.stops_at_faults = False
        axis = {port.name: port.axis or 0 for port in program.inputs}
        for first in range(0, 28, program.pulse):
            pulse = {
                name: np.take(array, range(first, first + program.pulse), axis[name])
                for name, array in wrong.items()
            }
            state.step(pulse)
        rest = {name: np.take(array, range(28, 29), axis[name]) for name, array in wrong.items()}
        if program.pulse == 1:
            state.step(rest)
        state.flush(rest if program.pulse > 1 else None)
        assert state.faults == offline.value.faults


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_faulty_stream_is_refused_until_reset_or_restored(backend: str) -> None:
    """The counts are part of a snapshot."""
    typed, feeds, value = gather()
    program = compile_model(pulsify(typed, pulse=4), backend)
    state, well = program.spawn(), feeds["i"][..., :4]
    state.step(well)
    before = state.snapshot()
    wrong = faulty(typed, feeds, value, 1)["i"][..., :4]
    with pytest.raises(
        FaultError, match=r"the \(Gather\): 1 value of input 1 outside -7 … 6, in pulse 1.*reset"
    ):
        state.step(wrong)
    failed = state.snapshot()
    for call in (lambda: state.step(well), lambda: state.flush()):
        with pytest.raises(FaultError, match="cannot continue"):
            call()
    state.restore(before)
    state.step(well)
    state.restore(failed)
    with pytest.raises(FaultError, match="cannot continue"):
        state.step(well)
    state.reset()
    np.testing.assert_array_equal(state.step(well)["the"], typed.run({"i": well})["the"])
    assert not state.has_faulted


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 3, 11])
def test_a_lane_with_a_fault_is_named_and_the_others_continue(backend: str, count: int) -> None:
    typed, feeds, value = gather()
    lanes = compile_model(pulsify(typed, pulse=4), backend).spawn_many(count)
    well = np.repeat(feeds["i"][None, ..., :4], count, 0)
    expected = typed.run({"i": feeds["i"][..., :4]})["the"]
    lanes.step(well)
    wrong = well.copy()
    wrong[-1, 0, 0, 2] = value
    with pytest.raises(FaultError, match=rf"lane {count - 1}: the \(Gather\): 1 value") as error:
        lanes.step(wrong)
    assert error.value.lanes == (count - 1,)
    for lane in range(count - 1):
        np.testing.assert_array_equal(error.value.outputs["the"][lane], expected)
        assert lanes[lane].clock.pulse == 2
    with pytest.raises(InputError, match=f"lane {count - 1}: .*cannot continue"):
        lanes.step(well)
    if count > 1:
        assert lanes.step(well[:-1], range(count - 1))["the"].shape[0] == count - 1
    lanes[count - 1].reset()
    np.testing.assert_array_equal(lanes.step(well)["the"][-1], expected)


def test_a_proof_fails_if_only_the_stream_has_a_fault() -> None:
    typed, _, _ = gather()
    pulsed = pulsify(typed, pulse=4)
    reference_model, _, _ = lookup("1,2,T,i64", I64, 0)
    builder = ModelBuilder(i="1,2,T,i64")
    rows = builder.constant(np.concatenate([table(ROWS, 3)] * 2), "rows")
    wider = builder.model(builder.add("the", Gather(0), rows, builder["i"]))
    report = prove(
        pulsed, lambda feeds, arithmetic: wider.run(feeds, arithmetic=arithmetic), ProofChoice([9])
    )
    assert report.divergence is not None
    assert "the (Gather)" in report.divergence.reason
    assert "outside -7 … 6" in report.divergence.reason
    assert (
        prove(
            pulsed,
            lambda feeds, arithmetic: reference_model.run(feeds, arithmetic=arithmetic),
            ProofChoice([9]),
        ).divergence
        is None
    )
