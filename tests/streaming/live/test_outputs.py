"""The outputs of a run equal those of sessions, whenever they are taken and after any command."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from pulse.dim import TDim
from pulse.errors import InputError, PulseError
from pulse.facts import Array
from pulse.models import TypedModel
from pulse.ops.elementwise import Elementwise
from pulse.ops.slice import Slice
from pulse.program.program import Program
from streaming import Session
from streaming.policies import POLICIES
from tests.agreement import assert_outputs_equal
from tests.noise import normal_noise
from tests.streaming.live.runs import (
    BLOCK,
    RATE,
    chunk_program,
    delayed_model,
    engines,
    fields,
    filtered_chunks,
    meter_model,
    runs,
    session_outputs,
    stereo,
    sum_model,
)
from tests.streaming.models import TypedBuilder, cached_program, ending_model, filter_model, limited_model


def cut_model(frames: int = 37) -> TypedModel:
    """x [1, T], T > frames -> y [1, T], the same, and head [1, T - frames], which is sure to be that much later."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    length = TDim.of(builder.scope.symbol("T"))
    builder.scope.assume(f"T >= {frames}")
    unit = builder.constant("one", [[1.0]])
    return builder.finish(
        y=builder.wire("y", Elementwise("mul"), x, unit),
        head=builder.wire("head", Slice(1, TDim.of(0), length - frames), x),
    )


def join_parts(parts: list[dict[str, Array]], program: Program) -> dict[str, Array]:
    """Join the frames of each output; outputs that do not stream have a value in the last part."""
    return {
        port.name: np.concatenate([part[port.name] for part in parts], port.axis)
        if port.streams
        else parts[-1][port.name]
        for port in program.outputs
    }


@pytest.mark.parametrize(
    "make", [filter_model, meter_model, delayed_model, sum_model, cut_model, ending_model]
)
@pytest.mark.parametrize(
    ("backend", "engine"), [("numba", "worker"), ("numba", "callback"), ("numpy", "worker")]
)
@pytest.mark.parametrize("block", [7, 100, 160, 480])
def test_outputs_taken_during_a_run_equal_a_session(
    make: Callable[..., Any], backend: str, engine: str, block: int
) -> None:
    """Other rates, frames that are not sure to exist, outputs known at the end, of two streams."""
    compiled, x = cached_program(make, 160, backend), normal_noise(block * (3500 // block), 2)
    options = {"device": stereo(), "channels": "each", "records": True, "engine": engine}
    with runs(compiled, block=block, **options) as (host, live):
        parts = []
        for piece in np.split(x, [block, 2 * block, 10 * block]):
            host.run(piece)
            parts.append(live.outputs.take_ready())
            assert set(parts[-1][0]) == {port.name for port in compiled.outputs if port.streams}
    parts.append(live.outputs.flush())
    for number, expected in enumerate(session_outputs(compiled, x)):
        assert_outputs_equal(join_parts([part[number] for part in parts], compiled), expected)
    assert live.outputs.pulses_lost == 0


def test_a_frame_is_given_when_it_surely_exists() -> None:
    with runs(cached_program(cut_model), records=True) as (host, live):
        host.run(normal_noise(10 * BLOCK, 1))
        host.advance(0.1)
        assert live.outputs.take_ready()[0]["head"].shape == (1, 10 * BLOCK - 37)


def test_a_run_without_input_equals_a_session() -> None:
    with runs(cached_program(meter_model), records=True) as (_, live):
        assert live.outputs.take_ready()[0]["level"].shape == (1, 1, 0)
    assert_outputs_equal(live.outputs.flush()[0], Session(cached_program(meter_model)).flush())
    with runs(cached_program(ending_model), records=True) as (_, live):
        pass
    with pytest.raises(InputError, match="last: no value in a stream of 0 frames"):
        live.outputs.flush()


@engines
def test_outputs_agree_with_those_of_an_authors_loop(engine: str) -> None:
    """The author's loop runs in onnxruntime; the last chunk is filled up with zeros."""
    x, gain = normal_noise(BLOCK * 11 + 3, 1), np.float32(0.5)
    with runs(chunk_program(), block=1, records=True, constants={"gain": gain}, engine=engine) as (
        host,
        live,
    ):
        parts = []
        for piece in np.array_split(x, 5):
            host.run(piece)
            parts.append(live.outputs.take_ready()[0])
    parts.append(live.outputs.flush()[0])
    session = onnxruntime.InferenceSession(filtered_chunks().SerializeToString())
    cache, expected = np.zeros((1, 4), np.float32), []
    for chunk in np.split(np.concatenate([x[:, 0], np.zeros(-len(x) % 8, np.float32)]), -(-len(x) // 8)):
        y, cache = session.run(None, {"x": chunk[None], "cache": cache, "gain": np.asarray(gain)})
        expected.append(y)
    output = join_parts(parts, chunk_program())["y"]
    assert output.shape == (1, len(x))
    np.testing.assert_allclose(output, np.concatenate(expected, 1)[:, : len(x)], atol=1e-6)


@pytest.mark.parametrize("frames", [960, 999, 1000, 1100, 1120, 3000])
def test_a_run_ends_at_the_limit_of_the_model(frames: int) -> None:
    """The outputs have all frames that the model takes; the run ends when there are more."""
    compiled, x = cached_program(limited_model), normal_noise(frames, 1)
    with runs(compiled, block=1, headroom_s=0.0, records=True) as (host, live):
        host.run(x)
        host.advance(0.2)
        if frames >= 1120:
            with pytest.raises(PulseError, match="has reached its limit of 1000 frames"):
                live.wait(0)
        else:
            assert not live.wait(0)
    assert_outputs_equal(live.outputs.flush()[0], session_outputs(compiled, x[:1000])[0])


@pytest.mark.parametrize("pulse_frames", [125, 160, 480])
@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "abort"])
def test_a_run_that_ends_in_a_stall_gives_all_accepted_frames(pulse_frames: int, policy: str) -> None:
    """All that was accepted is in the outputs, however much of it waits, and although playing has stopped."""
    compiled, block = cached_program(filter_model, pulse_frames), 500
    with runs(compiled, block=block, policy=policy, records=True) as (host, live):
        host.stall(6)
        x = normal_noise(5 * RATE // block * block, 1)
        host.run(x)
        accepted = fields(live).in_written
    assert accepted > 4 * RATE
    assert_outputs_equal(live.outputs.flush()[0], session_outputs(compiled, x[:accepted])[0])
    assert live.outputs.pulses_lost == 0


class Oracle:
    """Sessions that are fed pulse by pulse, to which the same is done as to the pipeline."""

    def __init__(self, program: Program, x: Array) -> None:
        self.program, self.x, self.pulses = program, x, 0
        self.sessions = [Session(program) for _ in range(x.shape[1])]
        self.parts = [[] for _ in self.sessions]

    def run(self, pulses: int) -> None:
        """Run up to this number of pulses."""
        while self.pulses < pulses:
            self.push(self.program.pulse)
            self.pulses += 1

    def push(self, frames: int) -> None:
        first = self.pulses * self.program.pulse
        for session, parts, column in zip(self.sessions, self.parts, self.x.T):
            parts.append(session.push(column[None, first : first + frames]))

    def outputs(self) -> list[dict[str, Array]]:
        """Push the remaining frames and return all outputs, flush included."""
        self.push(len(self.x) - self.pulses * self.program.pulse)
        ends = [session.flush() for session in self.sessions]
        return [join_parts([*parts, end], self.program) for parts, end in zip(self.parts, ends)]


@engines
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_resets_and_restores_act_as_in_sessions(engine: str, data: st.DataObject) -> None:
    """Resets, snapshots and restores come in any order, and ready outputs are taken in between."""
    compiled = cached_program(
        data.draw(st.sampled_from([filter_model, meter_model, delayed_model, sum_model]), "model"), 16
    )
    block = data.draw(st.sampled_from([5, 16, 50]), "block")
    x = normal_noise(block * 60, 2, seed=block)
    oracle, parts, saved, at = Oracle(compiled, x), [], None, 0
    options = {"device": stereo(), "channels": "each", "records": True, "engine": engine}
    with runs(compiled, block=block, **options) as (host, live):
        for _ in range(data.draw(st.integers(1, 8), "orders")):
            count = data.draw(st.integers(0, 7)) * block
            host.run(x[at : at + count])
            at += count
            oracle.run(fields(live).pulses)
            kind = data.draw(st.sampled_from(["reset", "snapshot", "restore", "take"]), "order")
            event(kind)
            if kind == "take":
                parts.append(live.outputs.take_ready())
            elif kind == "reset":
                live.control.reset()
                for session in oracle.sessions:
                    session.reset()
            elif kind == "snapshot":
                saved = live.control.snapshot(), [session.snapshot() for session in oracle.sessions]
            elif saved is not None:
                live.control.restore(saved[0])
                for session, snapshot in zip(oracle.sessions, saved[1]):
                    session.restore(snapshot)
        host.run(x[at:])
    parts.append(live.outputs.flush())
    for number, expected in enumerate(oracle.outputs()):
        assert_outputs_equal(join_parts([part[number] for part in parts], compiled), expected)


@pytest.mark.parametrize("make", [filter_model, meter_model, cut_model])
@pytest.mark.parametrize("first", [0, 1, 5])
def test_untaken_records_are_lost_and_the_others_correct(make: Callable[..., Any], first: int) -> None:
    """A reset is among the lost pulses; its invalid frames are left out, and the end is correct."""
    compiled, x = cached_program(make), normal_noise(2000 * BLOCK, 1)
    with runs(compiled, records=True) as (host, live):
        size = fields(live).record_count
        edges = np.cumsum([0, size + 3, first, 4, 10]) * BLOCK
        before, unheard, unrecorded, after = (x[a:b] for a, b in itertools.pairwise(edges))
        host.run(np.concatenate([before, unheard]))
        host.advance(0.1)
        live.control.reset()
        host.run(unrecorded)
        host.advance(0.1)
        assert live.outputs.pulses_lost == 3 + first + 4
        first_record = live.outputs.take_ready()[0]
        assert_outputs_equal(first_record, Session(compiled).push(before[: size * BLOCK].T))
        host.run(after)
    end, session = live.outputs.flush()[0], Session(compiled)
    session.push(unrecorded.T)
    expected = join_parts([session.push(after.T), session.flush()], compiled)
    for name in expected:
        np.testing.assert_array_equal(end[name], expected[name][..., -end[name].shape[-1] :])
        missing = expected[name].shape[-1] - end[name].shape[-1]
        assert 0 <= missing <= (37 if name == "head" else 0), "only what was held back in what is lost"
