"""All frames of the stream are checked for faults, and no others."""

from collections.abc import Callable

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.errors import FaultError, PulsifyError
from pulse.graph import OutletId
from pulse.ops.conv import Conv
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from pulse.ops.slice import Slice
from pulse.program.whole_stream import stream_whole
from pulse.pulsify.driver import pulsify
from tests.pulse.model_builder import ModelBuilder, pads_of
from tests.pulse.program.faulty_models import (
    F32,
    I64,
    ROWS,
    indices,
    programs,
    table,
)


@pytest.mark.parametrize("frames", [1, 4, 5])
@pytest.mark.parametrize("tail", [1, 3])
def test_frames_that_are_cut_off_are_not_checked(frames: int, tail: int) -> None:
    """A token is looked up only if another one follows: -100 at the end is no fault."""
    builder = ModelBuilder(i="T,i64")
    length = builder.length(builder["i"], 0)
    cut = builder.add("cut", Slice(0, TDim.of(0), length - tail), builder["i"])
    typed = builder.model(builder.add("the", Gather(0), builder.constant(table(ROWS, 3), "rows"), cut))
    for count in (tail + 1, 8, 10, 15):
        x = np.arange(count) % ROWS
        x[-tail:] = -100
        expected = typed.run({"i": x})["the"]
        for program in programs(typed, frames):
            np.testing.assert_array_equal(stream_whole(program, {"i": x})["the"], expected)
    x[-tail - 1] = -100
    for program in programs(typed, frames):
        with pytest.raises(FaultError, match=r"the .*1 value"):
            stream_whole(program, {"i": x})


def garbage_before_the_start(builder: ModelBuilder) -> OutletId:
    """Frames before the first are 0 there, by which nothing can be divided."""
    return builder.cut(builder["i"], 3)


def garbage_after_the_end(builder: ModelBuilder) -> OutletId:
    return builder.add("cut", Slice(2, TDim.of(0), builder.length(builder["i"]) - 2), builder["i"])


def garbage_of_a_window(builder: ModelBuilder) -> OutletId:
    """Sums of windows that are not of the stream have NaN; the others are positive."""
    x = builder.add("real", Cast(F32), builder["i"])
    w = builder.constant(np.ones((2, 2, 3), F32), "w")
    return builder.add("whole", Cast(I64), builder.add("sum", Conv((1,), (1,), pads_of((0, 0))), x, w))


def garbage_of_a_lead(builder: ModelBuilder) -> OutletId:
    """Ones before and after; the buffer of the divisor begins with other frames."""
    return builder.pad(builder["i"], (2, 3), fill=1)


GARBAGE = [garbage_before_the_start, garbage_after_the_end, garbage_of_a_window, garbage_of_a_lead]


@pytest.mark.parametrize("make", GARBAGE)
@pytest.mark.parametrize("kind", ["div", "mod"])
def test_frames_outside_of_the_stream_are_not_checked(
    make: Callable[[ModelBuilder], OutletId], kind: str
) -> None:
    builder = ModelBuilder(i="1,2,T,i64")
    divisor = make(builder)
    the = builder.add("the", Elementwise(kind), builder.constant(np.array(720720, np.int64), "c"), divisor)
    later = builder.cut(the, 1, name="later")
    typed = builder.model(the, later)
    for count in (6, 7, 8, 16, 23):
        x = indices(count, 1, 9)
        expected = typed.run({"i": x})
        for program in programs(typed, 1, 4):
            for name, values in stream_whole(program, {"i": x}).items():
                np.testing.assert_array_equal(values, expected[name])


def test_frames_that_no_output_shows_are_checked() -> None:
    """Offline every frame of a wire is computed, so a stream looks at every frame too."""
    builder = ModelBuilder(i="T,i64")
    the = builder.add("the", Gather(0), builder.constant(table(ROWS, 3), "rows"), builder["i"])
    first_rows = builder.add("kept", Slice(0, TDim.of(2), builder.length(the, 0) - 3), the)
    typed = builder.model(first_rows)
    for wrong in (0, 8, 9, 11):
        x = np.arange(12) % ROWS
        x[wrong] = ROWS
        with pytest.raises(FaultError, match="the"):
            typed.run({"i": x})
        for program in programs(typed, 1, 4, 5):
            with pytest.raises(FaultError, match="the"):
                stream_whole(program, {"i": x})


def test_a_constant_index_is_checked_in_every_pulse() -> None:
    """The index of row 7 of 7 rows fails in pulse 0 already."""
    builder = ModelBuilder(x="1,2,T", i="1,i64")
    row = builder.add("the", Gather(0), builder.constant(table(ROWS, 2, 1), "rows"), builder["i"])
    typed = builder.model(builder.apply("add", builder["x"], row, name="y"))
    for program in programs(typed, 4):
        program.spawn({"i": np.array([3])}).step(np.zeros((1, 2, 4), F32))
        with pytest.raises(FaultError, match=r"the \(Gather\): 1 value .* in pulse 0"):
            program.spawn({"i": np.array([ROWS])}).step(np.zeros((1, 2, 4), F32))


def test_a_fault_in_the_prefix_is_refused() -> None:
    builder = ModelBuilder(i="1,2,T,i64")
    the = builder.add(
        "the", Gather(0), builder.constant(table(ROWS, 3), "rows"), builder.pad(builder["i"], (2, 0), fill=9)
    )
    with pytest.raises(PulsifyError, match=r"the .*known before the stream begins"):
        pulsify(builder.model(the), pulse=4)


def test_the_last_frames_are_checked_in_the_last_pulse() -> None:
    """Not before: until then their buffer holds zeros, which are no divisors."""
    builder = ModelBuilder(i="1,1,T,i64")
    last = builder.add(
        "last", Slice(2, builder.length(builder["i"]) - 3, builder.length(builder["i"])), builder["i"]
    )
    the = builder.add("the", Elementwise("div"), builder.constant(np.array(60), "c"), last)
    typed = builder.model(the)
    for count in (4, 8, 9, 11):
        x = np.zeros((1, 1, count), I64)
        x[..., -3:] = 2
        for program in programs(typed, 1, 4):
            np.testing.assert_array_equal(stream_whole(program, {"i": x})["the"], [[[30, 30, 30]]])
        x[..., -2] = 0
        for program in programs(typed, 1, 4):
            with pytest.raises(FaultError, match=r"the .*1 value"):
                stream_whole(program, {"i": x})
