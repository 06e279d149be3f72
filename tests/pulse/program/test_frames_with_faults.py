"""Which frames are looked at for faults: those of the stream, and no others."""

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
from pulse.program.whole import stream_whole
from pulse.pulsify.driver import pulsify
from tests.pulse.models import Sketch, pads_of
from tests.pulse.program.faulty_models import (
    F32,
    I64,
    ROWS,
    indices,
    programs,
    table,
)


@pytest.mark.parametrize("frames", [1, 4, 5])
def test_frames_that_are_cut_off(frames: int) -> None:
    """The last token is looked up only where another one follows: -100 at the end is no fault."""
    for tail in (1, 3):
        sketch = Sketch(i="T,i64")
        length = sketch.length(sketch["i"], 0)
        cut = sketch.add("cut", Slice(0, TDim.of(0), length - tail), sketch["i"])
        typed = sketch.model(sketch.add("the", Gather(0), sketch.constant(table(ROWS, 3), "rows"), cut))
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


def garbage_before_the_start(sketch: Sketch) -> OutletId:
    """Frames before the first are 0 there, by which nothing can be divided."""
    return sketch.cut(sketch["i"], 3)


def garbage_behind_the_end(sketch: Sketch) -> OutletId:
    return sketch.add("cut", Slice(2, TDim.of(0), sketch.length(sketch["i"]) - 2), sketch["i"])


def garbage_of_a_window(sketch: Sketch) -> OutletId:
    """Sums of windows that are not of the stream have NaN; the others are positive."""
    x = sketch.add("real", Cast(F32), sketch["i"])
    w = sketch.constant(np.ones((2, 2, 3), F32), "w")
    return sketch.add("whole", Cast(I64), sketch.add("sum", Conv((1,), (1,), pads_of((0, 0))), x, w))


def garbage_of_a_lead(sketch: Sketch) -> OutletId:
    """Ones in front and behind; the buffer of the divisor begins with other frames."""
    return sketch.pad(sketch["i"], (2, 3), fill=1)


GARBAGE = [garbage_before_the_start, garbage_behind_the_end, garbage_of_a_window, garbage_of_a_lead]


@pytest.mark.parametrize("make", GARBAGE)
def test_frames_outside_of_the_stream(make: Callable[[Sketch], OutletId]) -> None:
    for kind in ("div", "mod"):
        sketch = Sketch(i="1,2,T,i64")
        divisor = make(sketch)
        the = sketch.add("the", Elementwise(kind), sketch.constant(np.array(720720, np.int64), "c"), divisor)
        later = sketch.cut(the, 1, name="later")
        typed = sketch.model(the, later)
        for count in (6, 7, 8, 16, 23):
            x = indices(count, 1, 9)
            expected = typed.run({"i": x})
            for program in programs(typed, 1, 4):
                for name, values in stream_whole(program, {"i": x}).items():
                    np.testing.assert_array_equal(values, expected[name])


def test_a_fault_that_no_output_shows() -> None:
    """Offline every frame of a wire is computed, so a stream looks at every frame too."""
    sketch = Sketch(i="T,i64")
    the = sketch.add("the", Gather(0), sketch.constant(table(ROWS, 3), "rows"), sketch["i"])
    first_rows = sketch.add("kept", Slice(0, TDim.of(2), sketch.length(the, 0) - 3), the)
    typed = sketch.model(first_rows)
    for wrong in (0, 8, 9, 11):
        x = np.arange(12) % ROWS
        x[wrong] = ROWS
        with pytest.raises(FaultError, match="the"):
            typed.run({"i": x})
        for program in programs(typed, 1, 4, 5):
            with pytest.raises(FaultError, match="the"):
                stream_whole(program, {"i": x})


def test_constants_given_once() -> None:
    """An index that does not stream is looked at in every pulse."""
    sketch = Sketch(x="1,2,T", i="1,i64")
    row = sketch.add("the", Gather(0), sketch.constant(table(ROWS, 2, 1), "rows"), sketch["i"])
    typed = sketch.model(sketch.each("add", sketch["x"], row, name="y"))
    for program in programs(typed, 4):
        program.spawn({"i": np.array([3])}).step(np.zeros((1, 2, 4), F32))
        with pytest.raises(FaultError, match=r"the \(Gather\): 1 value .* in pulse 0"):
            program.spawn({"i": np.array([ROWS])}).step(np.zeros((1, 2, 4), F32))


def test_known_before_the_stream_begins() -> None:
    sketch = Sketch(i="1,2,T,i64")
    the = sketch.add(
        "the", Gather(0), sketch.constant(table(ROWS, 3), "rows"), sketch.pad(sketch["i"], (2, 0), fill=9)
    )
    with pytest.raises(PulsifyError, match=r"the .*known before the stream begins"):
        pulsify(sketch.model(the), pulse=4)


def test_the_last_frames() -> None:
    """They are looked at in the last pulse, and as many as there are; the buffer holds zeros before."""
    sketch = Sketch(i="1,1,T,i64")
    last = sketch.add(
        "last", Slice(2, sketch.length(sketch["i"]) - 3, sketch.length(sketch["i"])), sketch["i"]
    )
    the = sketch.add("the", Elementwise("div"), sketch.constant(np.array(60), "c"), last)
    typed = sketch.model(the)
    for count in (4, 8, 9, 11):
        x = np.zeros((1, 1, count), I64)
        x[..., -3:] = 2
        for program in programs(typed, 1, 4):
            np.testing.assert_array_equal(stream_whole(program, {"i": x})["the"], [[[30, 30, 30]]])
        x[..., -2] = 0
        for program in programs(typed, 1, 4):
            with pytest.raises(FaultError, match=r"the .*1 value"):
                stream_whole(program, {"i": x})
