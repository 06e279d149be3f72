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
        s = Sketch(i="T,i64")
        length = s.length(s["i"], 0)
        cut = s.add("cut", Slice(0, TDim.of(0), length - tail), s["i"])
        typed = s.model(s.add("the", Gather(0), s.constant(table(ROWS, 3), "rows"), cut))
        for count in (tail + 1, 8, 10, 15):
            x = np.arange(count) % ROWS
            x[-tail:] = -100
            wanted = typed.run({"i": x})["the"]
            for program in programs(typed, frames):
                np.testing.assert_array_equal(stream_whole(program, {"i": x})["the"], wanted)
        x[-tail - 1] = -100
        for program in programs(typed, frames):
            with pytest.raises(FaultError, match=r"the .*1 value"):
                stream_whole(program, {"i": x})


def garbage_before_the_start(s: Sketch) -> OutletId:
    """Frames before the first are 0 there, by which nothing can be divided."""
    return s.cut(s["i"], 3)


def garbage_behind_the_end(s: Sketch) -> OutletId:
    return s.add("cut", Slice(2, TDim.of(0), s.length(s["i"]) - 2), s["i"])


def garbage_of_a_window(s: Sketch) -> OutletId:
    """Sums of windows that are not of the stream have NaN; the others are positive."""
    x = s.add("real", Cast(F32), s["i"])
    w = s.constant(np.ones((2, 2, 3), F32), "w")
    return s.add("whole", Cast(I64), s.add("sum", Conv((1,), (1,), pads_of((0, 0))), x, w))


def garbage_of_a_lead(s: Sketch) -> OutletId:
    """Ones in front and behind; the buffer of the divisor begins with other frames."""
    return s.pad(s["i"], (2, 3), fill=1)


GARBAGE = [garbage_before_the_start, garbage_behind_the_end, garbage_of_a_window, garbage_of_a_lead]


@pytest.mark.parametrize("make", GARBAGE)
def test_frames_outside_of_the_stream(make: Callable[[Sketch], OutletId]) -> None:
    for kind in ("div", "mod"):
        s = Sketch(i="1,2,T,i64")
        divisor = make(s)
        the = s.add("the", Elementwise(kind), s.constant(np.array(720720, np.int64), "c"), divisor)
        later = s.cut(the, 1, name="later")
        typed = s.model(the, later)
        for count in (6, 7, 8, 16, 23):
            x = indices(count, 1, 9)
            wanted = typed.run({"i": x})
            for program in programs(typed, 1, 4):
                for name, values in stream_whole(program, {"i": x}).items():
                    np.testing.assert_array_equal(values, wanted[name])


def test_a_fault_that_no_output_shows() -> None:
    """Offline every frame of a wire is computed, so a stream looks at every frame too."""
    s = Sketch(i="T,i64")
    the = s.add("the", Gather(0), s.constant(table(ROWS, 3), "rows"), s["i"])
    kept = s.add("kept", Slice(0, TDim.of(2), s.length(the, 0) - 3), the)
    typed = s.model(kept)
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
    s = Sketch(x="1,2,T", i="1,i64")
    row = s.add("the", Gather(0), s.constant(table(ROWS, 2, 1), "rows"), s["i"])
    typed = s.model(s.each("add", s["x"], row, name="y"))
    for program in programs(typed, 4):
        program.spawn({"i": np.array([3])}).step(np.zeros((1, 2, 4), F32))
        with pytest.raises(FaultError, match=r"the \(Gather\): 1 value .* in pulse 0"):
            program.spawn({"i": np.array([ROWS])}).step(np.zeros((1, 2, 4), F32))


def test_known_before_the_stream_begins() -> None:
    s = Sketch(i="1,2,T,i64")
    the = s.add("the", Gather(0), s.constant(table(ROWS, 3), "rows"), s.pad(s["i"], (2, 0), fill=9))
    with pytest.raises(PulsifyError, match=r"the .*known before the stream begins"):
        pulsify(s.model(the), pulse=4)


def test_the_last_frames() -> None:
    """They are looked at in the last pulse, and as many as there are; the buffer holds zeros before."""
    s = Sketch(i="1,1,T,i64")
    last = s.add("last", Slice(2, s.length(s["i"]) - 3, s.length(s["i"])), s["i"])
    the = s.add("the", Elementwise("div"), s.constant(np.array(60), "c"), last)
    typed = s.model(the)
    for count in (4, 8, 9, 11):
        x = np.zeros((1, 1, count), I64)
        x[..., -3:] = 2
        for program in programs(typed, 1, 4):
            np.testing.assert_array_equal(stream_whole(program, {"i": x})["the"], [[[30, 30, 30]]])
        x[..., -2] = 0
        for program in programs(typed, 1, 4):
            with pytest.raises(FaultError, match=r"the .*1 value"):
                stream_whole(program, {"i": x})
