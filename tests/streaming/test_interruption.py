"""``push`` and ``flush`` are all or nothing, whatever exception comes and wherever it comes."""

import gc
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.program.native.native_state import NativeState
from pulse.program.program import Program
from streaming import Session
from streaming.native.resample import AudioResampler, NativeResampler
from tests.interrupted_streams import count_outcomes
from tests.interruption import Unit, everywhere
from tests.noise import next_noise, normal_noise
from tests.pulse.program.custom_ops import TooLoudError
from tests.pulse.program.programs import are_bit_identical, block, constants, program
from tests.streaming import models

UNITS = [
    ("numba", "line", 1),
    ("numba", "opcode", 37),
    pytest.param("numba", "opcode", 1, marks=pytest.mark.slow),
    ("numpy", "line", 31),
    ("numpy", "opcode", 397),
]
units = pytest.mark.parametrize(("backend", "unit", "step"), UNITS)


def begin_session(program: Program, frames: int = 11) -> Session:
    session = Session(program, constants(program))
    session.push(block(program, frames))
    return session


def outcomes(
    begin: Callable[[], Session], call: Callable[..., Any], unit: Unit, step: int, after: Callable[..., Any]
) -> Counter[str]:
    """Counts of sessions that continued, and of those that had to be reset, after an interrupted call."""
    return count_outcomes(begin, call, after, unit, step, refused=("snapshot", "flush"))


@units
@pytest.mark.parametrize("name", ["windows", "constant"])
def test_an_interrupted_push_is_undone_or_refused(name: str, backend: str, unit: str, step: int) -> None:
    compiled = program(name, backend)
    x, more = block(compiled, 10, 5), block(compiled, 7, 6)
    counts = outcomes(
        lambda: begin_session(compiled),
        lambda session: session.push(x),
        unit,
        step,
        lambda session: (session.push(more), session.flush()),
    )
    assert counts["as before"]
    assert (counts["refused"] > 0) == (backend == "numba")


@units
@pytest.mark.parametrize("name", ["matrix", "transform"])
def test_an_interrupted_push_of_one_pulse_is_undone_or_whole(
    name: str, backend: str, unit: str, step: int
) -> None:
    """The push goes past the buffers; the counts are the same."""
    compiled = program(name, backend)
    x, more = block(compiled, compiled.pulse, 5), block(compiled, 2 * compiled.pulse + 1, 6)
    counts = outcomes(
        lambda: begin_session(compiled, 2 * compiled.pulse),
        lambda session: session.push(x),
        unit,
        step,
        lambda session: (session.push(more), session.flush()),
    )
    assert counts["as before"]
    session, other = (
        begin_session(compiled, 2 * compiled.pulse),
        begin_session(compiled, 2 * compiled.pulse + 1),
    )
    session.push(x)
    other.push(x)
    assert (session.frames_in, session.pulses) == (3 * compiled.pulse, 3)
    assert session.statistics().frames_out == other.statistics().frames_out
    assert (session.pending_frames, other.pending_frames) == (0, 1)
    broken = x.copy()
    broken.flat[3] = np.nan
    with pytest.raises(InputError, match="NaN"):
        session.push(broken)


@pytest.mark.parametrize("step", [61, pytest.param(13, marks=pytest.mark.slow)])
def test_a_push_of_many_pulses_is_undone(step: int) -> None:
    compiled = program("windows")
    x, more = block(compiled, NativeState.min_pulses_to_mark * compiled.pulse, 5), block(compiled, 7, 6)
    counts = outcomes(
        lambda: begin_session(compiled),
        lambda session: session.push(x),
        "opcode",
        step,
        lambda session: (session.push(more), session.flush()),
    )
    assert counts["as before"] > 100
    assert not counts["refused"]


@pytest.mark.parametrize(
    ("backend", "step"), [("numba", 1), ("numpy", 5), pytest.param("numpy", 1, marks=pytest.mark.slow)]
)
def test_a_push_without_a_pulse_is_undone(backend: str, step: int) -> None:
    compiled = program("windows", backend)
    x, more = block(compiled, 1, 5), block(compiled, 17, 6)
    counts = outcomes(
        lambda: begin_session(compiled, 9),
        lambda session: session.push(x),
        "opcode",
        step,
        lambda session: (session.push(more), session.flush()),
    )
    assert counts["as before"] > 100
    assert not counts["refused"]


@units
def test_flush_is_undone(backend: str, unit: str, step: int) -> None:
    compiled = program("windows", backend)
    counts = outcomes(
        lambda: begin_session(compiled), lambda session: session.flush(), unit, step, lambda session: ()
    )
    assert counts["as before"]
    assert not counts["refused"]


@pytest.mark.parametrize("ahead", [0, 9, 61])
def test_inputs_that_wait_for_each_other_survive_an_interruption(ahead: int) -> None:
    """The first input is ahead, so that its buffer grows, moves on and empties inside a push."""
    compiled = models.program(models.two_rate_model(), 2, "numba")
    rng = np.random.default_rng(0)
    fast = next_noise(rng, 1, 1, 400)
    slow = next_noise(rng, 1, 1, 100)
    gain = {"gain": np.ones((1, 1, 1), np.float32)}

    def begin():
        session = Session(compiled, gain)
        session.push({"fast": fast[..., : 13 + ahead], "slow": slow[..., :2]})
        session.push({"slow": slow[..., 2:3]})
        return session

    def call(session):
        return session.push({"fast": fast[..., 13 + ahead : 40 + ahead], "slow": slow[..., 3:8]})

    def push_the_rest(session):
        outputs = session.push({"fast": fast[..., 40 + ahead :], "slow": slow[..., 8:]})
        return outputs, session.flush()

    counts = outcomes(begin, call, "opcode", 7, push_the_rest)
    assert counts["as before"]


def test_an_error_in_a_later_pulse_changes_nothing() -> None:
    compiled = program("failing", "numpy")
    session, straight = begin_session(compiled), begin_session(compiled)
    x = block(compiled, 23, 3)
    loud = x.copy()
    loud[..., 17] = 1e9
    before, statistics = session.snapshot(), session.statistics()
    for _ in range(2):
        with pytest.raises(TooLoudError):
            session.push(loud)
        assert session.snapshot() == before
        assert session.statistics() == statistics
    assert are_bit_identical(session.push(x), straight.push(x))
    session.push(loud[..., 15:18])
    before = session.snapshot()
    with pytest.raises(TooLoudError):
        session.flush()
    assert session.snapshot() == before


def test_a_reset_undoes_an_interruption() -> None:
    compiled = program("windows")
    x = block(compiled, 10, 5)
    expected = Session(compiled).push(x)
    sessions = []

    def begin_call():
        sessions.append(begin_session(compiled))
        return lambda: sessions[-1].push(x)

    for _ in everywhere(begin_call, "line"):
        sessions[-1].reset()
        assert sessions[-1].statistics().frames_in == 0
        assert are_bit_identical(sessions[-1].push(x), expected)


@pytest.mark.parametrize("call", ["reset", "restore"])
def test_reset_and_restore_can_be_called_again(call: str) -> None:
    compiled = program("windows")
    x, saved = block(compiled, 10, 5), begin_session(compiled, 5).snapshot()
    session = Session(compiled)
    if call == "restore":
        session.restore(saved)
    expected, unchanged = session.push(x), begin_session(compiled).push(x)
    sessions = []

    def begin_call():
        sessions.append(begin_session(compiled))
        return sessions[-1].reset if call == "reset" else lambda: sessions[-1].restore(saved)

    for _ in everywhere(begin_call, "opcode"):
        session = sessions.pop()
        try:
            outputs = session.push(x)
            assert are_bit_identical(outputs, unchanged) or are_bit_identical(
                outputs, expected
            )  # not begun, or done
        except InputError as error:
            assert "reset()" in str(error)
        session.reset() if call == "reset" else session.restore(saved)
        assert are_bit_identical(session.push(x), expected)


def interrupted_in_a_pulse(program: Program) -> Session:
    """A session whose push could not be undone."""
    sessions, x = [], block(program, 10, 5)

    def begin_call():
        sessions.append(begin_session(program))
        return lambda: sessions[-1].push(x)

    for _ in everywhere(begin_call, "opcode"):
        try:
            sessions[-1].snapshot()
        except InputError:
            return sessions[-1]
    pytest.fail("all of them were undone")


def test_a_refused_restore_leaves_a_session_interrupted() -> None:
    compiled, other = program("windows"), program("limited")
    session = interrupted_in_a_pulse(compiled)
    with pytest.raises(InputError, match="belongs to another model or pulse"):
        session.restore(begin_session(other).snapshot())
    with pytest.raises(InputError, match=r"reset\(\)"):
        session.push(block(compiled, 1))


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Disable the garbage collector: Python ignores an exception that comes while hypothesis times a collection."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
def test_pushes_survive_signals_at_random_moments() -> None:
    """A real SIGINT, as Ctrl-C sends it, at random moments of pushes of different lengths."""
    compiled = program("windows")
    rng = random.Random(0)
    straight, session = Session(compiled), Session(compiled)
    reached = Counter()

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(150):
            x = block(compiled, rng.choice([3, 40, 1000]), number)
            saved = session.snapshot()
            push, ready = session.push, None
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 2e-4))
                ready = push(x)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if ready is None and session.frames_in == straight.frames_in + x.shape[-1]:
                reached["after the call"] += 1  # the block was taken, and what it gave was not assigned
                session.restore(saved)
            elif ready is None:
                try:
                    ready = session.push(x)
                    reached["as before"] += 1
                except InputError:
                    reached["refused"] += 1
                    session.restore(saved)
            if ready is None:
                ready = session.push(x)
            assert are_bit_identical(ready, straight.push(x))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert reached["as before"]
    assert are_bit_identical(session.flush(), straight.flush())


@pytest.mark.parametrize("rates", [(48000, 16000), (16000, 16000)])
@pytest.mark.parametrize("call", ["process", "flush"])
def test_an_interrupted_resampler_needs_a_reset(rates: tuple[int, int], call: str) -> None:
    x = normal_noise(700, 1)
    straight = AudioResampler(*rates)
    expected = [straight.process(x), straight.process(x), straight.flush()]
    straight.process(x), straight.process(x)
    third = straight.process(x)
    resamplers = []

    def begin_call():
        resampler = AudioResampler(*rates)
        resampler.process(x)
        resampler.process(x)
        resamplers.append(resampler)
        return (lambda: resampler.process(x)) if call == "process" else resampler.flush

    for _ in everywhere(begin_call, "opcode"):
        resampler = resamplers.pop()
        try:
            if call == "process":
                assert np.array_equal(resampler.process(x), third)
                continue
            assert np.array_equal(resampler.flush(), expected[2])
        except InputError as error:
            assert "reset()" in str(error)
        resampler.reset()
        pieces = [resampler.process(x), resampler.process(x), resampler.flush()]
        assert all(map(np.array_equal, pieces, expected))


def test_a_resampler_names_the_block_that_does_not_fit() -> None:
    resampler = AudioResampler(48000, 16000, 2)
    with pytest.raises(InputError, match=r"expected a block \[samples, 2\], got \[10, 3\]"):
        resampler.process(np.zeros((10, 3), np.float32))
    resampler.process(np.zeros((10, 2), np.float32))


def test_an_interrupted_native_resampler_needs_a_reset() -> None:
    x = normal_noise(700)
    straight = NativeResampler(48000, 16000)
    expected = straight.process(x), straight.process(x)
    resamplers = []

    def begin_call():
        resampler = NativeResampler(48000, 16000)
        resampler.process(x)
        resamplers.append(resampler)
        return lambda: resampler.process(x)

    for _ in everywhere(begin_call, "opcode"):
        resampler = resamplers.pop()
        try:
            assert np.array_equal(resampler.process(x), expected[1])
        except InputError as error:
            assert "reset()" in str(error)
        resampler.reset()
        assert np.array_equal(resampler.process(x), expected[0])
