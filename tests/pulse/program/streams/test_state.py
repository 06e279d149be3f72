"""A single stream: what it accepts, how it ends, and that it is alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.errors import InputError
from pulse.facts import Array
from pulse.ops.shape import Reshape
from pulse.ops.slice import Slice
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.program.whole_stream import run_whole
from pulse.pulsify.driver import pulsify
from tests.backends import BACKENDS
from tests.invariants.graphs import feeds, random_model, shortest
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.programs import are_bit_identical
from tests.pulse.program.streams.model_of_everything import (
    PULSE,
    TYPED,
    play_whole,
    pulses_of,
    stereo_noise,
)

F = np.float32


def locked_copy(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


# what is accepted


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        pytest.param(
            {"z": stereo_noise(4)}, "no pulse for input x; feed x: 1,2,4,f32", id="unknown input alone"
        ),
        pytest.param({}, "no pulse for input x", id="no input"),
        pytest.param(
            {"x": stereo_noise(4), "z": stereo_noise(4)},
            "z is not a streaming input; feed x: 1,2,4,f32",
            id="unknown input too",
        ),
        pytest.param(stereo_noise(3), "expected a pulse x: 1,2,4,f32, got 1,2,3,f32", id="short pulse"),
        pytest.param(stereo_noise(4)[0], "expected a pulse x: 1,2,4,f32, got 2,4,f32", id="no batch"),
        pytest.param(stereo_noise(4).astype(np.float64), "got 1,2,4,f64", id="f64"),
        pytest.param(stereo_noise(4).astype(np.int16), "got 1,2,4,i16", id="i16"),
    ],
)
def test_a_pulse_that_does_not_fit_changes_nothing(
    program: Program, feed: Array | dict[str, Array], message: str
) -> None:
    """Names, shape and dtype; the message says what is expected."""
    state = program.spawn()
    state.step(stereo_noise(4, 1))
    before = state.snapshot()
    with pytest.raises(InputError, match=message):
        state.step(feed)
    assert state.snapshot() == before


def test_strided_and_read_only_pulses_are_read(program: Program) -> None:
    """Any memory order; the caller's array is never written."""
    x = stereo_noise(4)
    x.flags.writeable = False
    turned = np.asfortranarray(np.repeat(x, 2, axis=2))[..., ::2]
    assert are_bit_identical(program.spawn().step(x), program.spawn().step(turned))


def test_outputs_belong_to_the_caller(program: Program) -> None:
    """The next step does not overwrite them, nor does writing to them reach the stream."""
    state, other = program.spawn(), program.spawn()
    first = state.step(stereo_noise(4, 1))
    copies = {name: array.copy() for name, array in first.items()}
    second = state.step(stereo_noise(4, 2))
    assert are_bit_identical(first, copies)
    other.step(stereo_noise(4, 1))
    reference = other.step(stereo_noise(4, 2))
    for array in (*first.values(), *second.values()):
        array[...] = 99
    assert are_bit_identical(state.step(stereo_noise(4, 3)), other.step(stereo_noise(4, 3)))
    assert reference["total"].max() < 99


def test_a_step_into_arrays_gives_the_same_numbers(program: Program) -> None:
    """The same numbers, in arrays of any memory order; one array if there is one output, over the input even."""
    state, other = program.spawn(), program.spawn()
    outputs = {port.name: np.full(port.shape, 99, port.dtype, order="F") for port in program.outputs}
    for seed in range(5):
        state.step(stereo_noise(4, seed), outputs)
        expected = other.step({"x": stereo_noise(4, seed)})
        assert all(np.array_equal(outputs[name], expected[name]) for name in expected)
    builder = ModelBuilder(x="1,2,T")
    single = compile_model(
        pulsify(builder.model(builder.apply("neg", builder["x"])), pulse=4), program.backend
    ).spawn()
    x = stereo_noise(4)
    single.step({"x": x}, x)
    assert np.array_equal(x, -stereo_noise(4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda right: right["total"],
            "pass an array for each output: total: 1,2,4,f32; low: 1,2,2,f32; last: 1,2,3,f32",
        ),
        (lambda right: {"total": right["total"]}, "pass an array for each output"),
        (
            lambda right: right | {"low": right["total"]},
            "expected an array for the output low: 1,2,2,f32, got 1,2,4,f32",
        ),
        (
            lambda right: right | {"low": right["low"].astype(np.float64)},
            "expected an array for the output low",
        ),
        (lambda right: right | {"low": [1.0]}, "expected an array for the output low"),
        (
            lambda right: right | {"total": locked_copy(right["total"])},
            "the array for the output total cannot be written",
        ),
    ],
    ids=["one array", "outputs missing", "shape", "type", "a list", "locked"],
)
def test_arrays_that_do_not_fit_the_outputs_are_refused(
    program: Program, change: Callable[[dict[str, Array]], Any], message: str
) -> None:
    """The refusal comes before anything has run: the state is as before."""
    state = program.spawn()
    right = {port.name: np.zeros(port.shape, port.dtype) for port in program.outputs}
    before = state.snapshot()
    with pytest.raises(InputError, match=message):
        state.step(stereo_noise(4), change(right))
    assert state.snapshot() == before


def test_a_step_into_arrays_without_its_input_is_refused(program: Program) -> None:
    state = program.spawn()
    outputs = {port.name: np.zeros(port.shape, port.dtype) for port in program.outputs}
    before = state.snapshot()
    with pytest.raises(InputError, match="no pulse for input x"):
        state.step({}, outputs)
    assert state.snapshot() == before


def test_an_output_that_is_the_input_is_a_copy(program: Program) -> None:
    """The program computes nothing."""
    builder = ModelBuilder(x="1,2,T")
    state = compile_model(pulsify(builder.model(builder["x"]), pulse=4), program.backend).spawn()
    x = stereo_noise(4)
    y = state.step(x)["x"]
    x[...] = 7
    assert not np.shares_memory(x, y)
    assert y.max() < 7


# how it ends


@pytest.mark.parametrize("frames", [3, 5, 8, 11, 40])
def test_a_stream_with_and_without_a_rest_agrees_with_offline(program: Program, frames: int) -> None:
    """Equal to offline, the last frames included; a rest of nothing is no rest."""
    x = stereo_noise(frames)
    streamed, _ = run_whole(program.spawn(), {"x": x}, np.nan)
    for name, expected in TYPED.run(x).items():
        np.testing.assert_allclose(streamed[name], expected, 1e-4, 1e-5)


def test_an_ended_stream_takes_nothing(program: Program) -> None:
    """A second flush or step is refused, with the way out; reset begins again."""
    state = program.spawn()
    state.step(stereo_noise(4))
    ended = state.flush()
    assert len(ended) > 0
    before = state.snapshot()
    for call in (lambda: state.step(stereo_noise(4)), state.flush, lambda: state.flush(stereo_noise(2))):
        with pytest.raises(InputError, match=r"stream has ended; begin a new one with reset\(\)"):
            call()
    assert state.snapshot() == before
    state.reset()
    state.step(stereo_noise(4))


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        pytest.param(
            stereo_noise(4), "x: 4 frames is at least a whole pulse; call step first", id="whole pulse"
        ),
        pytest.param(stereo_noise(9), "x: 9 frames is at least a whole pulse", id="more than a pulse"),
        pytest.param(
            stereo_noise(2).astype(np.float64),
            "expected less than a pulse x: 1,2,4,f32, got 1,2,2,f64",
            id="f64",
        ),
        pytest.param(stereo_noise(2)[:, :1], "got 1,1,2,f32", id="one channel"),
        pytest.param({"y": stereo_noise(2)}, "feed x: 1,2,4,f32", id="unknown input"),
    ],
)
def test_a_rest_that_does_not_fit_ends_nothing(
    program: Program, rest: Array | dict[str, Array], message: str
) -> None:
    """After the refusal the state is as before, and the stream continues."""
    state = program.spawn()
    state.step(stereo_noise(4, 1))
    before = state.snapshot()
    with pytest.raises(InputError, match=message):
        state.flush(rest)
    assert state.snapshot() == before
    state.step(stereo_noise(4, 2))


def test_a_flush_reports_each_pulse_and_fills_no_valid_frame(program: Program) -> None:
    state, calls = program.spawn(), []
    results = state.flush(stereo_noise(3), fill=1e30, after=lambda: calls.append(1))
    assert len(calls) == len(results) == program.steps(3)
    delay = program.outputs[0].delay
    joined = np.concatenate([result["total"] for result in results], 2)[..., delay : delay + 3]
    np.testing.assert_allclose(joined, TYPED.run(stereo_noise(3))["total"], 1e-4, 1e-5)


def test_a_flush_at_an_invalid_length_is_refused(program: Program) -> None:
    """T frames that are folded in pairs and compared with T: only even ones."""
    builder = ModelBuilder(x="1,1,T")
    half = builder.length(builder["x"]) // 2
    pairs = builder.add("pairs", Reshape((TDim.of(1), half, TDim.of(2))), builder["x"])
    flat = builder.add("flat", Reshape((TDim.of(1), TDim.of(1), half * 2)), pairs)
    typed = builder.model(builder.apply("add", flat, builder["x"]))
    assert typed.scope.assumptions
    state = compile_model(pulsify(typed, pulse=4), program.backend).spawn()
    state.step(stereo_noise(4)[:, :1])
    before = state.snapshot()
    with pytest.raises(
        InputError, match=r"a stream of 7 frames of T does not satisfy .*T.*end it at another"
    ):
        state.flush(stereo_noise(3)[:, :1])
    assert state.snapshot() == before
    assert len(state.flush(stereo_noise(2)[:, :1])) == 1


def test_a_table_limits_the_stream(program: Program) -> None:
    """64 rows: pulse 17 of 4 is one too many, which is reported before anything changes."""
    builder = ModelBuilder(x="1,2,T")
    table = builder.constant(builder.taps(1, 2, 64), "table")
    rows = builder.add("rows", Slice(2, TDim.of(0), builder.length(builder["x"])), table)
    typed = builder.model(builder.apply("add", builder["x"], rows))
    limited = compile_model(pulsify(typed, pulse=PULSE), program.backend)
    assert limited.limit == 64
    assert program.limit is None
    state, x = limited.spawn(), stereo_noise(64)
    output = np.concatenate([state.step(part)["add"] for part in pulses_of(x)], 2)
    np.testing.assert_allclose(output, typed.run(x)["add"], 1e-5)
    before = state.snapshot()
    with pytest.raises(InputError, match="at most 64 frames of T, and this pulse would make it 68: flush"):
        state.step(stereo_noise(4))
    assert state.snapshot() == before
    with pytest.raises(InputError, match="at most 64 frames of T, and this stream has 65"):
        state.flush(stereo_noise(1))
    assert state.flush() == []


# constants


GAIN = np.array([[[2], [3]]], F)


@pytest.fixture
def gain_program(program: Program) -> Program:
    """The program of x times a gain that does not stream, on the same backend."""
    builder = ModelBuilder(x="1,2,T", gain="1,2,1")
    typed = builder.model(builder.apply("mul", builder["x"], builder["gain"]))
    return compile_model(pulsify(typed, pulse=PULSE), program.backend)


def test_missing_and_wrong_constants_are_refused(program: Program, gain_program: Program) -> None:
    for constants in (None, {}, {"gain": GAIN, "more": GAIN}, {"other": GAIN}):
        with pytest.raises(InputError, match=r"given once, with constants=: gain: 1,2,1,f32"):
            gain_program.spawn(constants)
    for wrong in (GAIN[0], GAIN.astype(np.float64)):
        with pytest.raises(InputError, match="expected gain: 1,2,1,f32, got"):
            gain_program.spawn({"gain": wrong})
    with pytest.raises(InputError, match=r"do not stream are given once.*none"):
        program.spawn({"gain": GAIN})


def test_each_stream_keeps_its_constants(gain_program: Program) -> None:
    state, other = gain_program.spawn({"gain": GAIN}), gain_program.spawn({"gain": -GAIN})
    for seed in range(3):
        x = stereo_noise(4, seed)
        np.testing.assert_allclose(state.step(x)["mul"], x * GAIN)
        np.testing.assert_allclose(other.step(x)["mul"], -x * GAIN)


def test_constants_cannot_be_pushed(gain_program: Program) -> None:
    with pytest.raises(InputError, match="gain is not a streaming input"):
        gain_program.spawn({"gain": GAIN}).step({"x": stereo_noise(4), "gain": GAIN})


def test_several_inputs_end_together(program: Program) -> None:
    """Inputs are given by name, and their rests must belong to one length of the stream."""
    builder = ModelBuilder(x="1,2,T", y="1,2,2*T")
    typed = builder.model(builder.apply("add", builder.conv(builder["y"], 2, stride=2), builder["x"]))
    state = compile_model(pulsify(typed, pulse=2), program.backend).spawn()
    with pytest.raises(InputError, match="2 inputs stream: feed them by name, x: 1,2,2,f32; y: 1,2,4,f32"):
        state.step(stereo_noise(2))
    with pytest.raises(InputError, match="no pulse for input y"):
        state.step({"x": stereo_noise(2)})
    state.step({"x": stereo_noise(2), "y": stereo_noise(4)})
    with pytest.raises(InputError, match="the inputs end at different times: x with 3 of T, y with 4 of 2"):
        state.flush({"x": stereo_noise(1), "y": stereo_noise(0)})
    (result,) = state.flush({"x": stereo_noise(1, 3), "y": stereo_noise(2, 4)})
    full = {
        "x": np.concatenate([stereo_noise(2), stereo_noise(1, 3)], 2),
        "y": np.concatenate([stereo_noise(4), stereo_noise(2, 4)], 2),
    }
    np.testing.assert_allclose(result["add"][..., :1], typed.run(full)["add"][..., 2:], 1e-4, 1e-5)


# repeated


def test_reset_gives_the_same_again(program: Program) -> None:
    """Byte for byte, from any point, the end register included."""
    state = program.spawn()
    first = play_whole(state, stereo_noise(23))
    state.reset()
    again = play_whole(state, stereo_noise(23))
    assert len(first) == len(again)
    assert all(map(are_bit_identical, first, again))
    state.reset()
    state.step(stereo_noise(4, 9))
    state.reset()
    assert all(map(are_bit_identical, first, play_whole(state, stereo_noise(23))))


def test_states_of_one_program_are_independent(program: Program) -> None:
    """Interleaved, each gives what it gives alone."""
    recordings = [stereo_noise(frames, seed) for seed, frames in enumerate((24, 17, 33))]
    alone = [play_whole(program.spawn(), x) for x in recordings]
    states = [program.spawn() for _ in recordings]
    together: list[list[dict[str, Array]]] = [[] for _ in recordings]
    for number in range(9):
        for state, x, results in zip(states, recordings, together):
            parts = pulses_of(x)
            if number < len(parts):
                results.append(state.step(parts[number]))
            elif number == len(parts):
                rest = x[..., len(parts) * PULSE :]
                results.extend(state.flush(rest if rest.shape[-1] else None))
    for expected, results in zip(alone, together):
        assert len(expected) == len(results)
        assert all(map(are_bit_identical, expected, results))


@pytest.mark.filterwarnings("ignore:(invalid|divide by zero|overflow):RuntimeWarning")
def test_backends_agree_on_random_streams() -> None:
    """Each graph streams two recordings, with a reset between them."""
    compared = 0
    for seed in range(40):
        rng = np.random.default_rng(1000 + seed)
        typed = random_model(rng, 8)
        model = pulsify(typed, pulse=pulsify(typed).pulse * int(rng.integers(1, 4)))
        programs = [compile_model(model, backend) for backend in BACKENDS]
        min_length = shortest(typed)
        values = [feeds(typed, length, rng) for length in (min_length, min_length + 13)]
        sides = {port.name: values[0][port.name] for port in model.inputs if not port.streams}
        states = [program.spawn(sides) for program in programs]
        for recording in values:
            results = []
            for state in states:
                state.reset()
                try:
                    results.append(run_whole(state, recording, np.nan)[0])
                except InputError as error:
                    results.append(str(error))
            if isinstance(results[0], str):
                assert results[0] == results[1]
                continue
            for name, expected in results[0].items():
                np.testing.assert_allclose(results[1][name], expected, 1e-4, 1e-5, err_msg=f"{seed} {name}")
            compared += 1
    assert compared >= 60
