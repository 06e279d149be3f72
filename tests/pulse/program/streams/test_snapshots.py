"""Snapshots of one stream: where they continue, and which are refused."""

from collections.abc import Callable

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.program.streams.state import State
from pulse.program.table.memory import Buffer, Image, Region
from pulse.pulsify.driver import pulsify
from pulse.support.mapping import ALIGNMENT
from tests.backends import BACKENDS
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.programs import are_bit_identical
from tests.pulse.program.streams.model_of_everything import (
    PROGRAMS,
    TYPED,
    play_whole,
    pulses_of,
    stereo_noise,
)


def test_a_snapshot_continues_in_any_state_of_its_program(program: Program) -> None:
    """The stream continues in the same state and in another state of the program."""
    x = stereo_noise(31)
    state = program.spawn()
    for part in pulses_of(x)[:3]:
        state.step(part)
    saved = state.snapshot()
    assert isinstance(saved, bytes)
    assert state.snapshot() == saved
    rest = x[..., 12:]
    expected = play_whole(state, rest)
    other = program.spawn()
    other.step(stereo_noise(4, 5))
    for target in (state, other):
        target.restore(saved)
        assert target.snapshot() == saved
        assert all(map(are_bit_identical, expected, play_whole(target, rest)))


def test_a_snapshot_keeps_whether_the_stream_has_ended(program: Program) -> None:
    """A stream that has ended stays ended; a snapshot from before the end opens it again."""
    state = program.spawn()
    state.step(stereo_noise(4))
    before = state.snapshot()
    ended = state.flush(stereo_noise(2, 1))
    after = state.snapshot()
    other = program.spawn()
    other.restore(after)
    with pytest.raises(InputError, match="has ended"):
        other.step(stereo_noise(4))
    other.restore(before)
    assert all(map(are_bit_identical, ended, other.flush(stereo_noise(2, 1))))


@pytest.mark.parametrize("difference", ["pulse", "backend"])
def test_snapshots_of_another_program_are_refused(program: Program, difference: str) -> None:
    """A refused snapshot leaves the state unchanged."""
    state = program.spawn()
    state.step(stereo_noise(4))
    good = state.snapshot()
    (other,) = set(BACKENDS) - {program.backend}
    pulse_of_eight = compile_model(pulsify(TYPED, pulse=8), program.backend)
    foreign = pulse_of_eight if difference == "pulse" else PROGRAMS[other]
    with pytest.raises(
        InputError,
        match="another model or pulse, to other constants or weights, or to another version of pulse; take",
    ):
        state.restore(foreign.spawn().snapshot())
    assert state.snapshot() == good


def test_snapshots_of_other_weights_are_refused(program: Program) -> None:
    first, second = (
        compile_model(pulsify(builder.model(builder.conv(builder["x"], 3)), pulse=4), program.backend).spawn()
        for builder in (ModelBuilder(1, x="1,2,T"), ModelBuilder(2, x="1,2,T"))
    )
    with pytest.raises(InputError, match="another model or pulse"):
        first.restore(second.snapshot())


def test_snapshots_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version may keep other values in a state of the same size."""
    model = pulsify(TYPED, pulse=4)
    for backend in BACKENDS:
        snapshot = compile_model(model, backend).spawn().snapshot()
        compile_model(model, backend).spawn().restore(snapshot)
        with monkeypatch.context() as patch:
            patch.setattr("pulse.program.program.__version__", "0.0.1")
            later = compile_model(model, backend).spawn()
            with pytest.raises(InputError, match="or to another version of pulse"):
                later.restore(snapshot)


def test_snapshots_of_another_layout_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lowering that keeps the same number of bytes in other runs."""
    builder = ModelBuilder(1, x="1,2,T")
    model = pulsify(builder.model(builder.conv(builder["x"], 33)), pulse=4)
    first = compile_model(model, "numba")
    snapshot = first.spawn().snapshot()
    add = Image.add

    def add_two_runs(image: Image, data: Array, shared: bool) -> Buffer:
        """Add one run of state as two that are adjacent in memory."""
        if image.region is not Region.STATE or data.nbytes <= ALIGNMENT:
            return add(image, data, shared)
        raw = np.ascontiguousarray(data).view(np.uint8).ravel()
        start = add(image, raw[:ALIGNMENT], False)
        add(image, raw[ALIGNMENT:], False)
        return Buffer(start.region, raw.size, start.offset)

    monkeypatch.setattr(Image, "add", add_two_runs)
    second = compile_model(model, "numba")
    assert (second.initial == first.initial).all()
    with pytest.raises(InputError, match="belongs to another model"):
        second.spawn().restore(snapshot)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda good: b"", "not a snapshot"),
        (lambda good: good[:20], "not a snapshot"),
        (lambda good: b"x" * len(good), "not a snapshot"),
        (lambda good: good[:-1], "bytes of memory, but"),
        (lambda good: good + b"\0", "bytes of memory, but"),
    ],
    ids=["empty", "cut in the header", "other bytes", "cut at the end", "longer"],
)
def test_damaged_snapshots_are_refused(
    program: Program, damage: Callable[[bytes], bytes], message: str
) -> None:
    """A refused snapshot leaves the state unchanged."""
    state = program.spawn()
    state.step(stereo_noise(4))
    good = state.snapshot()
    with pytest.raises(InputError, match=message):
        state.restore(damage(good))
    assert state.snapshot() == good


def test_snapshots_differ_by_the_initial_state(program: Program) -> None:
    """Two models that differ only in the number that pads their start."""
    states: list[State] = []
    for fill in (1.0, 2.0):
        builder = ModelBuilder(x="1,2,T")
        model = pulsify(builder.model(builder.pad(builder["x"], (3, 0), fill=fill)), pulse=4)
        states.append(compile_model(model, program.backend).spawn())
    with pytest.raises(InputError, match="another model"):
        states[0].restore(states[1].snapshot())
