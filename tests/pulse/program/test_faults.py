"""Values for which a node has no result: offline, in streams of both backends, in lanes; and never a false alarm."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, NodeProto

import pulse
from pulse import Chunking
from pulse.dim import TDim
from pulse.errors import FaultError, InputError, PulsifyError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.conv import Conv
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from pulse.ops.lookup import GatherBatches, GatherElements
from pulse.ops.scatter import ScatterElements, ScatterND
from pulse.ops.slice import Slice
from pulse.program.compiler import BACKENDS, compile_model
from pulse.program.program import Program
from pulse.program.whole import stream_whole
from pulse.proof.prover import prove
from pulse.pulsify.driver import pulsify
from tests.pulse.cases.build import model, node
from tests.pulse.cases.scan import body
from tests.pulse.models import Sketch, pads_of

I64, I32, U8, F32 = (np.dtype(kind) for kind in (np.int64, np.int32, np.uint8, np.float32))
ROWS = 7
Feeds = dict[str, Array]
Case = tuple[TypedModel, Feeds, int | float]
"""A model whose node ``the`` has no result for one value of its input ``i``, inputs that are well, that value."""

CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def table(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=F32).reshape(shape)


def indices(frames: int, low: int = -ROWS, high: int = ROWS) -> Array:
    return np.random.default_rng(3).integers(low, high, (1, 2, frames))


def lookup(i: str, dtype: np.dtype, value: int) -> Case:
    s = Sketch(i=i)
    rows = s.constant(table(ROWS, 3), "rows")
    return s.model(s.add("the", Gather(0), rows, s["i"])), {"i": indices(29).astype(dtype)}, value


@case
def gather() -> Case:
    return lookup("1,2,T,i64", I64, ROWS)


@case
def gather_i32() -> Case:
    return lookup("1,2,T,i32", I32, -ROWS - 1)


@case
def gather_of_a_stream() -> Case:
    """The data stream, the indices stream on the same frames: one for each element."""
    s = Sketch(x="1,7,T", i="1,2,T,i64")
    the = s.add("the", GatherElements(1), s["x"], s["i"])
    return s.model(the), {"x": table(1, ROWS, 29), "i": indices(29)}, -ROWS - 1


@case
def gather_nd() -> Case:
    """Of an index the last place is out of range."""
    s = Sketch(x="T,7,3", i="T,2,1,i64")
    the = s.add("the", GatherBatches(1), s["x"], s["i"])
    return (
        s.model(the),
        {"x": table(29, ROWS, 3), "i": np.moveaxis(indices(29), -1, 0).reshape(29, 2, 1)},
        ROWS,
    )


@case
def scatter_elements() -> Case:
    s = Sketch(x="1,7,T", i="1,2,T,i64", u="1,2,T")
    the = s.add("the", ScatterElements(1), s["x"], s["i"], s["u"])
    return s.model(the), {"x": table(1, ROWS, 29), "i": indices(29), "u": table(1, 2, 29)}, 1 << 40


def of_integers(kind: str, dtype: np.dtype, value: int, name: str, low: int = 1) -> Case:
    s = Sketch(x=f"1,2,T,{name}", i=f"1,2,T,{name}")
    feeds = {"x": indices(29, low, 5).astype(dtype), "i": indices(29, low, 5).astype(dtype)}
    return s.model(s.add("the", Elementwise(kind), s["x"], s["i"])), feeds, value


@case
def division() -> Case:
    return of_integers("div", I64, 0, "i64")


@case
def division_i32() -> Case:
    return of_integers("div", I32, 0, "i32")


@case
def remainder() -> Case:
    return of_integers("mod", I64, 0, "i64")


@case
def c_remainder() -> Case:
    return of_integers("fmod", I32, 0, "i32")


@case
def power() -> Case:
    return of_integers("pow", I64, -1, "i64", 0)


def conversion(value: float, dtype: np.dtype) -> Case:
    s = Sketch(i="1,2,T")
    feeds = {"i": np.random.default_rng(1).uniform(0, 100, (1, 2, 29)).astype(F32)}
    return s.model(s.add("the", Cast(dtype), s["i"])), feeds, value


@case
def nan_to_i64() -> Case:
    return conversion(np.nan, I64)


@case
def infinity_to_i32() -> Case:
    return conversion(-np.inf, I32)


@case
def large_to_i32() -> Case:
    return conversion(2.0**31, I32)


@case
def large_to_i64() -> Case:
    return conversion(2.0**63, I64)


@case
def negative_to_u8() -> Case:
    return conversion(-1.0, U8)


@case
def broadcast_divisor() -> Case:
    """One divisor for all channels of a frame."""
    s = Sketch(x="1,2,T,i64", i="1,1,T,i64")
    the = s.add("the", Elementwise("div"), s["x"], s["i"])
    return s.model(the), {"x": indices(29), "i": indices(29, 1, 4)[:, :1]}, 0


@case
def behind_a_look_ahead() -> Case:
    """The other input is late, so the indices wait in a buffer, which holds zeros at first."""
    s = Sketch(x="1,2,T", i="1,2,T,i64")
    late = s.add("late", Cast(I64), s.add("zeros", Elementwise("abs"), s.conv(s["x"], 5, (0, 4))))
    one = s.add(
        "one", Elementwise("add"), s.add("late0", Elementwise("mul"), late, s.constant(np.array(0))), s["i"]
    )
    rows = s.constant(table(ROWS, 3), "rows")
    return s.model(s.add("the", Gather(0), rows, one)), {"x": table(1, 2, 29), "i": indices(29)}, ROWS


def frames_of(typed: TypedModel, name: str) -> int:
    return next(axis for axis, dim in enumerate(typed.inputs[name].shape) if not dim.is_const)


def faulty(typed: TypedModel, feeds: Feeds, value: float, *frames: int) -> Feeds:
    """The inputs with a value without a result at some frames."""
    axis, wrong = frames_of(typed, "i"), feeds["i"].copy()
    for frame in frames:
        place: list[int | slice] = [0] * wrong.ndim
        place[axis] = frame
        wrong[tuple(place)] = value
    return {**feeds, "i": wrong}


def programs(typed: TypedModel, *pulses: int) -> list[Program]:
    return [compile_model(pulsify(typed, pulse=n), backend) for n in pulses for backend in BACKENDS]


@pytest.mark.parametrize("name", CASES)
def test_each_op(name: str) -> None:
    """Well inputs stream as before; one value without a result raises offline and in the stream, wherever it is."""
    typed, feeds, value = CASES[name]()
    (wanted,) = typed.run(feeds).values()
    for program in programs(typed, 1, 4):
        np.testing.assert_array_equal(stream_whole(program, feeds)[typed.graph.output_names[0]], wanted)
    for frames in ((0,), (11,), (28,), (3, 17)):
        wrong = faulty(typed, feeds, value, *frames)
        with pytest.raises(FaultError, match=r"^the ") as offline:
            typed.run(wrong)
        assert [(fault.node, fault.count) for fault in offline.value.faults] == [("the", len(frames))]
        for program in programs(typed, 4, 16):
            with pytest.raises(FaultError, match=r"^the .*in pulse"):
                stream_whole(program, wrong)


@pytest.mark.parametrize("name", CASES)
def test_counts(name: str) -> None:
    """A stream that only counts gives in the end what the offline run tells, in both backends."""
    typed, feeds, value = CASES[name]()
    wrong = faulty(typed, feeds, value, 2, 5, 28)
    with pytest.raises(FaultError) as offline:
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
def test_a_stream_that_failed(backend: str) -> None:
    """It takes no more until it is reset, or a snapshot is restored; the counts are part of a snapshot."""
    typed, feeds, value = gather()
    program = compile_model(pulsify(typed, pulse=4), backend)
    state, well = program.spawn(), feeds["i"][..., :4]
    state.step(well)
    before = state.snapshot()
    wrong = faulty(typed, feeds, value, 1)["i"][..., :4]
    with pytest.raises(
        FaultError, match=r"the \(Gather\): 1 value of input 1 outside of -7 … 6, in pulse 1.*reset"
    ):
        state.step(wrong)
    failed = state.snapshot()
    for call in (lambda: state.step(well), lambda: state.flush()):
        with pytest.raises(FaultError, match="cannot go on"):
            call()
    state.restore(before)
    state.step(well)
    state.restore(failed)
    with pytest.raises(FaultError, match="cannot go on"):
        state.step(well)
    state.reset()
    np.testing.assert_array_equal(state.step(well)["the"], typed.run({"i": well})["the"])
    assert not state.faulted


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 3, 11])
def test_lanes(backend: str, count: int) -> None:
    """A lane that fails is named; the others have stepped, and go on."""
    typed, feeds, value = gather()
    lanes = compile_model(pulsify(typed, pulse=4), backend).spawn_many(count)
    well = np.repeat(feeds["i"][None, ..., :4], count, 0)
    wanted = typed.run({"i": feeds["i"][..., :4]})["the"]
    lanes.step(well)
    wrong = well.copy()
    wrong[-1, 0, 0, 2] = value
    with pytest.raises(FaultError, match=rf"lane {count - 1}: the \(Gather\): 1 value") as error:
        lanes.step(wrong)
    assert error.value.lanes == (count - 1,)
    for lane in range(count - 1):
        np.testing.assert_array_equal(error.value.outputs["the"][lane], wanted)
        assert lanes[lane].clock.pulse == 2
    with pytest.raises(InputError, match=f"lane {count - 1}: .*cannot go on"):
        lanes.step(well)
    if count > 1:
        assert lanes.step(well[:-1], range(count - 1))["the"].shape[0] == count - 1
    lanes[count - 1].reset()
    np.testing.assert_array_equal(lanes.step(well)["the"][-1], wanted)


# no false alarms


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
def test_what_is_no_frame_of_the_stream(make: Callable[[Sketch], OutletId]) -> None:
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


def chosen() -> GraphProto:
    """A row of a table for each frame; the state is the frame."""
    return body(
        [node("Identity", "x_in", "s_out"), node("Gather", "table x_in", "y_out")], "s_in x_in", "s_out y_out"
    )


@pytest.mark.parametrize("final", [True, False])
def test_scans(final: bool) -> None:
    """Faults in a body are those of its frames of the stream; a final state is looked at in the last pulse."""
    x, constants = np.arange(7), {"table": table(ROWS, 3), "s": np.array(0), "taps": np.ones((1, 1, 3), F32)}
    nodes = [
        node("Cast", "x", "real", to=1),
        node("Reshape", "real flat", "deep"),
        node("Conv", "deep taps", "sums", pads=[0, 2]),
        node("Reshape", "sums row", "thin"),
        node("Div", "thin three", "mean"),
        node("Cast", "mean", "index", to=7),
        node("Scan", "s index", "last rows", body=chosen(), num_scan_inputs=1),
        node("Gather", "table last", "final"),
    ]
    constants |= {"flat": np.array([1, 1, -1]), "row": np.array([-1]), "three": np.array(3, F32)}
    small = {**constants, "table": table(ROWS, 3)[: ROWS if final else 2 * ROWS]}
    proto = model(nodes, {"x": x}, small, 17, {"x": 0}, "final" if final else "rows")
    typed = pulse.load(proto).analyse()
    for count in (2, 7, 8, 11):
        x = np.arange(count) * 7 % 6
        wanted = typed.run({"x": x})
        wrong = np.where(np.arange(count) >= count - 1, 3 * ROWS + 1, x)
        for program in programs(typed, 1, 4):
            for name, values in stream_whole(program, {"x": x}).items():
                np.testing.assert_array_equal(values, wanted[name])
            with pytest.raises(FaultError) as error:
                stream_whole(program, {"x": wrong})
            nodes_of = {fault.node for fault in error.value.faults}
            assert nodes_of <= {"final", "last/y_out"} and nodes_of
        with pytest.raises(FaultError):
            typed.run({"x": wrong})


@pytest.mark.parametrize("backend", BACKENDS)
def test_counts_in_a_body(backend: str) -> None:
    """One count for each node of a body, whatever the pulse; offline the first frame that fails is told."""
    proto = model(
        [node("Scan", "s x", "last rows", body=chosen(), num_scan_inputs=1)],
        {"x": np.arange(7)},
        {"table": table(ROWS, 3), "s": np.array(0)},
        17,
        {"x": 0},
        "rows",
    )
    typed = pulse.load(proto).analyse()
    x = np.array([1, 2, -8, 3, 90, 0, 91])
    with pytest.raises(FaultError, match="y_out"):
        typed.run({"x": x})
    for frames in (1, 2, 4):
        state = compile_model(pulsify(typed, pulse=frames), backend).spawn()
        state.stops_at_faults = False
        for first in range(0, 7 // frames * frames, frames):
            state.step(x[first : first + frames])
        state.flush(x[7 // frames * frames :])
        assert [(fault.node, fault.count) for fault in state.faults] == [("last/y_out", 3)]


def test_frames_cut_off_in_front_of_a_scan() -> None:
    """A body never sees a frame that may turn out not to exist."""
    x, constants = np.arange(9), {"table": table(ROWS, 3), "s": np.array(0)}
    constants |= {name: np.array([value]) for name, value in (("zero", 0), ("end", -2))}
    nodes = [
        node("Slice", "x zero end zero", "cut"),
        node("Scan", "s cut", "last rows", body=chosen(), num_scan_inputs=1),
    ]
    typed = pulse.load(model(nodes, {"x": x}, constants, 17, {"x": 0}, "rows")).analyse()
    for count in (3, 8, 9, 12):
        x = np.arange(count) % ROWS
        x[-2:] = 100
        wanted = typed.run({"x": x})["rows"]
        for program in programs(typed, 1, 4):
            np.testing.assert_array_equal(stream_whole(program, {"x": x})["rows"], wanted)
        x[-3] = 100
        for program in programs(typed, 1, 4):
            with pytest.raises(FaultError, match="y_out"):
                stream_whole(program, {"x": x})


@pytest.mark.parametrize("backend", BACKENDS)
def test_chunks(backend: str) -> None:
    """Of a model of chunks all values count, those of the filled up last chunk too: its author's loop fails there."""
    nodes = [
        node("Gather", "table x", "rows"),
        node("Div", "x state", "quotient"),
        node("Add", "state one", "next"),
    ]
    constants = {"table": table(ROWS, 3)[1:], "one": np.array(1)}
    feeds = {"x": np.arange(4), "state": np.array(0)}
    typed = pulse.load(model(nodes, feeds, constants, 17, None, "rows quotient next")).model.analyse()
    begun = typed.chunked(Chunking({"state": "next"}, axes={"x": 0}, initial={"state": np.array(1)}))
    state = compile_model(begun, backend).spawn()
    state.step(np.array([1, 2, 3, 4]))
    with pytest.raises(FaultError, match=r"rows .*1 value"):
        state.step(np.array([1, 2, 3, 6]))
    state = compile_model(typed.chunked(Chunking({"state": "next"}, axes={"x": 0})), backend).spawn()
    with pytest.raises(FaultError, match=r"quotient .*0"):
        state.step(np.array([1, 2, 3, 4]))


@pytest.mark.parametrize("kind", ["shift_left", "shift_right"])
@pytest.mark.parametrize("name", ["u8", "i8", "i32", "i64"])
def test_shifts_have_results(kind: str, name: str) -> None:
    """By any number of places: ONNX's test cases say that no bit but the sign is left, for numbers below 0 too."""
    s = Sketch(x=f"T,{name}", n=f"T,{name}")
    typed = s.model(s.each(kind, s["x"], s["n"], name="y"))
    dtype = typed.inputs["x"].dtype
    places = [0, 1, 7, 8, 9, 31, 32, 33, 40, 63, 64, 100] + ([] if name[0] == "u" else [-1, -8, -100])
    x = np.array(
        [1, 5, 100] + ([] if name[0] == "u" else [-1, -6]) + ([1 << 45] if name == "i64" else []), dtype
    )
    feeds = {"x": np.repeat(x, len(places)), "n": np.tile(np.array(places, dtype), len(x))}
    for program in programs(typed, 4):
        np.testing.assert_array_equal(stream_whole(program, feeds)["y"], typed.run(feeds)["y"])


@pytest.mark.parametrize("name", ["i8", "i32"])
def test_the_least_integer_by_minus_one(name: str) -> None:
    s = Sketch(x=f"T,{name}", n=f"T,{name}")
    typed = s.model(s.each("div", s["x"], s["n"], name="y"))
    dtype = typed.inputs["x"].dtype
    least = np.iinfo(dtype).min
    feeds = {"x": np.array([least, least, -7, 7], dtype), "n": np.array([-1, 1, 2, -2], dtype)}
    assert typed.run(feeds)["y"].tolist() == [least, least, -3, -3]
    for program in programs(typed, 4):
        assert stream_whole(program, feeds)["y"].tolist() == [least, least, -3, -3]


def test_a_proof_fails() -> None:
    """Where the stream finds a fault that the offline model does not have."""
    typed, _, _ = gather()
    pulsed = pulsify(typed, pulse=4)
    lying, _, _ = lookup("1,2,T,i64", I64, 0)
    s = Sketch(i="1,2,T,i64")
    rows = s.constant(np.concatenate([table(ROWS, 3)] * 2), "rows")
    wider = s.model(s.add("the", Gather(0), rows, s["i"]))
    report = prove(pulsed, lambda feeds, arithmetic: wider.run(feeds, arithmetic=arithmetic), [9])
    assert report.divergence is not None
    assert "the (Gather)" in report.divergence.reason and "outside of -7 … 6" in report.divergence.reason
    assert (
        prove(pulsed, lambda feeds, arithmetic: lying.run(feeds, arithmetic=arithmetic), [9]).divergence
        is None
    )


OPERATORS: dict[str, tuple[list[NodeProto], Feeds, Feeds, list[Any]]] = {
    "GatherND": (
        [node("GatherND", "table i", "y")],
        {"i": np.array([[0, 2], [1, -3], [-2, 0]] * 3)},
        {"table": table(2, 3)},
        [[0, 3], [1, -4], [2, 0], [-3, 1]],
    ),
    "Pow": ([node("Pow", "i half", "y")], {"i": np.arange(9)}, {"half": np.array(0.5, F32)}, [-2]),
    "Mod": ([node("Mod", "c i", "y")], {"i": np.arange(1, 10)}, {"c": np.array(7)}, [0]),
    "Cast": ([node("Cast", "i", "y", to=6)], {"i": np.arange(9, dtype=F32)}, {}, [np.nan, np.inf, 3e9]),
    "QuantizeLinear": (
        [node("QuantizeLinear", "i scale zero", "y")],
        {"i": np.array([-1e30, np.inf, 0, 1, 2, 3, 4, 5, 6], F32)},
        {"scale": np.array(0.5, F32), "zero": np.array(3, U8)},
        [np.nan],
    ),
}
"""Nodes, inputs that are well, constants, and entries of the input for which there is no result."""


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    """As a file has them; what is cut to a range has a result."""
    nodes, feeds, constants, wrong = OPERATORS[name]
    typed = pulse.load(model(nodes, feeds, constants, 17, {"i": 0})).analyse()
    wanted = typed.run(feeds)["y"]
    for program in programs(typed, 1, 4):
        np.testing.assert_array_equal(stream_whole(program, feeds)["y"], wanted)
    for entry in wrong:
        for frame in (0, 5, 8):
            bad = feeds["i"].copy()
            bad[frame] = entry
            with pytest.raises(FaultError, match=r": 1 value"):
                typed.run({"i": bad})
            for program in programs(typed, 1, 4):
                with pytest.raises(FaultError, match=r": 1 value"):
                    stream_whole(program, {"i": bad})


def test_lengths_of_reversed_sequences() -> None:
    """They are no more than there are frames, and not negative."""
    x = table(5, 3)
    turned = node("ReverseSequence", "x i", "y", time_axis=0, batch_axis=1)
    typed = pulse.load(model([turned], {"x": x, "i": np.array([1, 5, 0])}, {}, 17)).analyse()
    assert typed.run({"x": x, "i": np.array([1, 5, 0])})["y"][0].tolist() == [0, 13, 2]
    for wrong in (6, -1):
        with pytest.raises(FaultError, match=r"1 value .* outside of 0 … 5"):
            typed.run({"x": x, "i": np.array([1, wrong, 0])})


def test_each_place_of_an_index_has_its_own_axis() -> None:
    shapes = [(2, 3, 4), (5, 2), (5, 4)]
    assert [check.high for check in ScatterND().checks(shapes, [F32, I64, F32])] == [1, 2]
    assert [check.column for check in GatherBatches(1).checks([(9, 3, 4), (9, 2)], [F32, I64])] == [0, 1]
