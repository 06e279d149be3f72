"""Chunk models as streams: equal to their author's loop in onnxruntime, on both backends, at any block size."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

import pulse
from pulse.errors import InputError, LoadError, PulseError, PulsifyError
from pulse.program.program import Program
from pulse.program.whole_stream import run_whole
from pulse.proof import ProofChoice, prove
from pulse.proof.oracle import pulsed_oracle
from streaming.session import Session
from tests.backends import BACKENDS
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.chunks.models import Array, loop, pieces

F = np.float32
PROVED = {"numpy": (1, 7, 8, 9, 45, 333), "numba": None}
"""Lengths that a proof tries: the usual ones, which are many, for kernels; numpy runs beside these."""


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


def zeros(**shapes: tuple[int, ...]) -> dict[str, tuple[str, Array]]:
    """States that begin at zero, by input, and the output of each."""
    return {name: (other, np.zeros(shape, F)) for name, (other, shape) in shapes.items()}


def join_results(results: list[dict[str, Array]], name: str) -> Array:
    return np.concatenate([result[name] for result in results], 1)


def stream_blocks(program: Program, x: Array, axis: int, seed: int = 0) -> dict[str, Array]:
    """A session in blocks of random sizes."""
    rng, session, start = np.random.default_rng(seed), Session(program), 0
    parts: list[dict[str, Array]] = []
    while start < x.shape[axis]:
        step = int(rng.integers(0, 3 * program.pulse + 2))
        parts.append(session.push(np.take(x, range(start, min(start + step, x.shape[axis])), axis)))
        start += step
    parts.append(session.flush(np.nan))
    return {
        port.name: np.concatenate([part[port.name] for part in parts], port.axis)
        for port in program.outputs
        if port.streams
    }


@pytest.mark.parametrize("frames", [1, 3])
def test_a_recurrent_step_agrees_with_the_author_s_loop(backend: str, frames: int) -> None:
    """H -> hn, one frame or several in a chunk; also with the length of a chunk left open."""
    model = models.gru(frames)
    x = normal_noise(1, 10 * frames, 4)
    expected = join_results(
        loop(model, [{"x": p} for p in pieces(x, 1, frames)], zeros(h=("hn", (1, 1, 3)))), "y"
    )
    axes = {} if frames == 1 else {"axes": {"x": 1}}
    program = models.stream(model, backend=backend, **axes)
    assert (program.pulse, [port.name for port in program.inputs]) == (frames, ["x"])
    np.testing.assert_allclose(stream_blocks(program, x, 1)["y"], expected, 1e-5, 1e-6)
    program = pulse.stream(models.gru("time"), pulse=frames, backend=backend)
    assert program.model.chunks is not None
    assert program.model.sizes == {"time": frames}
    np.testing.assert_allclose(stream_blocks(program, x, 1)["y"], expected, 1e-5, 1e-6)


@pytest.mark.parametrize("samples", [1, 7, 8, 50])
def test_a_cached_filter_agrees_with_the_author_s_loop(backend: str, samples: int) -> None:
    """Sound in chunks of 8; the last chunk is filled with zeros, whatever flush fills with."""
    model, x = models.cache_of_sound(), normal_noise(1, samples)
    expected = join_results(
        loop(model, [{"x": p} for p in pieces(x, 1, 8)], zeros(cache=("cache_out", (1, 4)))), "y"
    )
    output = stream_blocks(pulse.stream(model, backend=backend), x, 1, samples)["y"]
    assert output.shape == x.shape
    np.testing.assert_allclose(output, expected[:, :samples], 1e-5, 1e-6)


def test_states_may_change_places(backend: str) -> None:
    """Swapped, passed through, replaced by the input, by a constant, by a view of itself; own first values."""
    model, x = models.swapped_states(), normal_noise(1, 6 * 9)
    first = {name: normal_noise(1, 6, seed=number) for number, name in enumerate("abcdef", 20)}
    states = {name: (f"new_{name}", value) for name, value in first.items()}
    expected = join_results(loop(model, [{"x": p} for p in pieces(x, 1, 6)], states), "y")
    program = models.stream(model, initial=first, backend=backend)
    np.testing.assert_allclose(stream_blocks(program, x, 1)["y"], expected, 1e-5, 1e-6)
    with_states = models.stream(model, initial=first, backend=backend, outputs=["y", "new_a", "new_f"])
    state = with_states.spawn()
    for piece, by_step in zip(pieces(x, 1, 6), loop(model, [{"x": p} for p in pieces(x, 1, 6)], states)):
        for name, output in state.step(piece).items():
            np.testing.assert_allclose(output, by_step[name], 1e-5, 1e-6, err_msg=name)
    assert [port.axis for port in with_states.outputs] == [1, None, None]
    np.testing.assert_allclose(stream_blocks(with_states, x[:, :5], 1)["y"], expected[:, :5], 1e-5, 1e-6)


def test_an_integer_state_counts_exactly(backend: str) -> None:
    """The state is a counter of i64."""
    program = pulse.stream(models.counter(), backend=backend)
    state = program.spawn()
    for total in (3, 6, 9):
        np.testing.assert_array_equal(state.step(np.full((1, 1, 2), 3, np.int64))["y"], [[[total, total]]])


def test_context_comes_before_a_chunk_and_delay_drops_frames(backend: str) -> None:
    """4 samples of the past before 8 new ones, 4 out for 8 in; a delay drops frames and asks for more chunks."""
    model, x = models.half_context(), normal_noise(1, 45)
    states = zeros(state=("state_out", (1, 1)))
    padded = np.concatenate([x, np.zeros((1, 32), F)], 1)
    expected = join_results(loop(model, [{"x": p} for p in pieces(padded, 1, 8, 4)], states), "y")
    program = models.stream(model, 8, context={"x": 4}, backend=backend)
    (port,) = program.outputs
    assert (port.rate, str(port.length), port.delay) == (0.5, "(T+1)/2", 0)
    np.testing.assert_allclose(stream_blocks(program, x, 1)["y"], expected[:, :23], 1e-5, 1e-6)
    late = models.stream(model, context={"x": 4}, delay={"y": 5}, backend=backend)
    np.testing.assert_allclose(stream_blocks(late, x, 1)["y"], expected[:, 5:28], 1e-5, 1e-6)
    report = prove(late.model, pulsed_oracle(late.model), ProofChoice(PROVED[backend]), backend)
    assert report.require().worst.share <= 1


def test_inputs_of_several_rates_stream_together(backend: str) -> None:
    """Sound x [1, 8] counts the frames; one row of f [1, 1, 2] and one number p [1, 1] for each 8 of them."""
    nodes = [
        node("ReduceSum", "f", "gain", keepdims=0),
        node("Mul", "x gain", "loud"),
        node("Add", "loud s", "y"),
        node("ReduceMax", "y", "p", keepdims=1),
        node("Identity", "p", "sN"),
    ]
    model = models.build(
        nodes, {"x": [1, 8], "f": [1, 1, 2], "s": [1, 1]}, {"y": [1, 8], "p": [1, 1], "sN": [1, 1]}
    )
    program = pulse.stream(model, backend=backend)
    assert [str(port.length) for port in program.inputs] == ["T", "(T+7)/8"]
    x, f = normal_noise(1, 29), normal_noise(1, 4, 2)
    session = Session(program)
    parts = [session.push({"x": x[:, :11], "f": f[:, :2]}), session.push({"x": x[:, 11:], "f": f[:, 2:]})]
    parts.append(session.flush(np.nan))
    chunks = [{"x": a, "f": b} for a, b in zip(pieces(x, 1, 8), pieces(f, 1, 1))]
    expected = loop(model, chunks, zeros(s=("sN", (1, 1))))
    for name, length in (("y", 29), ("p", 4)):
        np.testing.assert_allclose(
            join_results(parts, name), join_results(expected, name)[:, :length], 1e-5, 1e-6
        )
    assert pulse.verify(program.model, lengths=PROVED[backend], backend=backend).require().equal


def test_every_model_of_chunks_has_a_proof() -> None:
    """Models of fixed chunks and of chunks of any length are proved."""
    report = pulse.verify(models.cache_of_sound())
    assert report.equal
    assert report.backends == ("numpy", "numba")
    assert report.lengths[0] == 1
    assert pulse.verify(models.gru("time"), pulse=3, lengths=[1, 7]).lengths == (1, 7)


def test_snapshots_continue_elsewhere_and_reset_begins_again(backend: str) -> None:
    """Registers are part of the state: a snapshot continues elsewhere, reset begins again."""
    program = pulse.stream(models.cache_of_sound(), backend=backend)
    x = normal_noise(1, 61)
    session, other = Session(program), Session(program)
    expected = stream_blocks(program, x, 1)["y"]
    before = session.push(x[:, :29])["y"]
    other.push(normal_noise(1, 33, seed=9))
    other.restore(session.snapshot())
    for stream in (session, other):
        rest = np.concatenate([stream.push(x[:, 29:])["y"], stream.flush()["y"]], 1)
        np.testing.assert_array_equal(np.concatenate([before, rest], 1), expected)
        stream.reset()
        again = np.concatenate([stream.push(x)["y"], stream.flush()["y"]], 1)
        np.testing.assert_array_equal(again, expected)


def test_another_first_value_is_another_program(backend: str) -> None:
    """Its output differs, and a snapshot of the other one is refused."""
    program = pulse.stream(models.gru(), backend=backend)
    changed = models.stream(models.gru(), backend=backend, initial={"h": np.ones((1, 1, 3))})
    assert not np.array_equal(
        program.spawn().step(normal_noise(1, 1, 4))["y"], changed.spawn().step(normal_noise(1, 1, 4))["y"]
    )
    with pytest.raises(InputError, match="belongs to another model"):
        changed.spawn().restore(program.spawn().snapshot())


def test_states_that_no_kept_output_needs_are_left_out() -> None:
    """Y alone needs all of them here; the input's own wire none."""
    model = models.swapped_states()
    assert [name for name, _, _ in pulse.load(model).pulsify().buffers()] == list("abcdef")
    only = pulse.load(model, outputs=["new_c", "new_a"]).pulsify()
    assert [name for name, _, _ in only.buffers()] == ["a", "b", "new_c.last"]
    assert [port.name for port in only.outputs] == ["new_c", "new_a"]


@pytest.mark.parametrize(
    "value",
    [0.25, [[[0.25] * 3]], np.full((1, 1, 3), 0.25)],
    ids=["a number for all elements", "a list", "an array"],
)
def test_fixed_inputs_become_constants(backend: str, value: Any) -> None:
    x = normal_noise(1, 3, 4)
    expected = pulse.load(models.gru(3)).model.analyse().run({"x": x, "h": np.full((1, 1, 3), 0.25, F)})["y"]
    fixed = pulse.load(models.gru(3), constants={"h": value}).analyse()
    assert list(fixed.inputs) == ["x"]
    np.testing.assert_allclose(fixed.run(x)["y"], expected, 1e-6)
    program = models.stream(models.gru(1), constants={"h": value}, states={}, backend=backend)
    np.testing.assert_allclose(program.spawn().step(x[:, :1])["y"], expected[:, :1], 1e-5, 1e-6)


@pytest.mark.parametrize("size", [1, "B", "length_axis"])
@pytest.mark.parametrize("value", [32, 32.0, [32]], ids=str)
def test_a_number_fills_a_shape_of_one_element(size: int | str, value: Any) -> None:
    """The file may leave the size open: it counts streams, or no other input has it."""
    nodes = [node("Mul", "x gain", "y"), node("Identity", "h", "hn")]
    batch = size if size == "B" else 1
    inputs = {"x": [batch, "T", 4], "h": [1, batch, 3], "gain": [size]}
    model = models.build(nodes, inputs, {"y": [batch, "T", 4], "hn": [1, batch, 3]})
    program = models.stream(model, 2, constants={"gain": value}, backend="numpy")
    x = normal_noise(1, 2, 4)
    assert [port.name for port in program.inputs] == ["x"]
    np.testing.assert_array_equal(program.spawn().step(x)["y"], x * 32)


@pytest.mark.parametrize(
    ("x", "mask"),
    [([1, "T", 4], ["T"]), (["n", 4], ["n"]), (["T", "B", 4], ["T"]), ([1, "N", 4], ["N", 1])],
    ids=["time", "a lone symbol", "time first", "two axes"],
)
def test_a_number_does_not_fix_the_time_axis(x: list[int | str], mask: list[int | str]) -> None:
    nodes = [node("ReduceMax", "mask", "peak", keepdims=0), node("Add", "x peak", "y")]
    model = models.build(nodes, {"x": x, "mask": mask}, {"y": x})
    with pytest.raises(
        LoadError, match=r"constant mask: 1 is one number, but the size \w of the input is open; give a"
    ):
        pulse.load(model, constants={"mask": 1})
    assert list(pulse.load(model, constants={"mask": np.ones([4, 1][: len(mask)])}).analyse().inputs) == ["x"]


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"z": 1}, "unknown input 'z'; choose one of x, h"),
        ({"h": "loud"}, "constant h: 'loud' is not of type f32"),
        ({"h": [1.0, 2.0]}, "input h: '2' has 1 dim; give 3"),
        ({"h": np.zeros((1, 1, 4))}, "has axis 2 as 4, the file fixes it to 3"),
    ],
)
def test_constants_that_do_not_fit_are_refused(constants: Mapping[str, object], message: str) -> None:
    """The message names the input and what it is."""
    with pytest.raises(LoadError, match=message):
        pulse.load(models.gru(), constants=constants)
    with pytest.raises(LoadError, match=r"constants must map names to values"):
        pulse.load(models.gru(), constants=["h"])  # pyright: ignore


def test_offline_models_stay_as_they_were(backend: str) -> None:
    """``states={}`` pulsifies a model with states and a time axis: h is then given once, hn known at the end."""
    program = models.stream(models.gru("time"), pulse=2, states={}, backend=backend)
    assert program.model.chunks is None
    x = normal_noise(1, 5, 4)
    outputs, _ = run_whole(program.spawn({"h": np.zeros((1, 1, 3), F)}), {"x": x}, np.nan)
    expected = loop(models.gru("time"), [{"x": x}], zeros(h=("hn", (1, 1, 3))))[0]
    np.testing.assert_allclose(outputs["y"], expected["y"], 1e-5, 1e-6)
    np.testing.assert_allclose(outputs["hn"], expected["hn"], 1e-5, 1e-6)
    with pytest.raises(PulseError, match="no input has a symbolic dim"):
        pulse.stream(models.build([node("Abs", "x", "y")], {"x": [1, 8]}, {"y": [1, 8]}))


@pytest.mark.parametrize("name", ["batch", "streams"])
def test_batch_dims_become_one(backend: str, name: str) -> None:
    """A dim that counts streams, by its name or because it leads, is 1; the report says what it became."""
    nodes = [node("Add", "x h", "y"), node("Identity", "y", "hn")]
    model = models.build(nodes, {"x": [name, "time"], "h": [name, 1]}, {"y": [name, "time"], "hn": [name, 1]})
    program = pulse.stream(model, pulse=1, backend=backend)
    assert program.model.chunks is not None
    assert program.model.sizes == {name: 1, "time": 1}
    np.testing.assert_array_equal(stream_blocks(program, np.ones((1, 4), F), 1)["y"], [[1, 2, 3, 4]])


def sum_with_state(x: list[int | str], h: list[int | str]) -> ModelProto:
    """A sum y of x, h and its own length; hn is h."""
    nodes = [
        node("ReduceMax", "h", "peak", keepdims=0),
        node("Add", "x peak", "y"),
        node("Identity", "h", "hn"),
    ]
    return models.build(nodes, {"x": x, "h": h}, {"y": x, "hn": h})


@pytest.mark.parametrize(
    ("x", "h", "options", "message"),
    [
        (
            [1, "mics", "time"],
            [1, 3],
            {},
            r"several dims of a chunk have names \(mics, time\): .*symbol=, .*inputs=$",
        ),
        ([1, "mics", "time"], [1, 3], {"symbol": "time"}, "the dim mics has no size; give it with inputs="),
        ([1, "time"], [1, "width"], {}, "the dim width has no size"),
        ([1, "time"], [1, 3], {"symbol": "S"}, "unknown symbol 'S'; choose one of time"),
        (
            [1, "2*time"],
            [1, 3],
            {"inputs": {"x": "1,2*time"}},
            "x: its chunk is not time frames long; give its shape with inputs=",
        ),
    ],
)
def test_dims_with_ambiguous_names_are_refused(
    x: list[int | str], h: list[int | str], options: Mapping[str, object], message: str
) -> None:
    """Time must be clear, and every other dim known."""
    with pytest.raises(PulsifyError, match=message):
        models.stream(sum_with_state(x, h), pulse=4, states={"h": "hn"}, backend="numpy", **options)  # pyright: ignore


@pytest.mark.parametrize(
    ("shape", "options", "axis"),
    [
        ([1, "mics", "time"], {"symbol": "time", "inputs": {"x": "1,2,time", "h": "1,3"}}, 2),
        (["N", 4], {}, 1),
        (["batch", 1, 2, 2], {}, 1),
    ],
    ids=["symbol and inputs", "a dim that counts streams", "no dim of time"],
)
def test_time_is_found_by_names_of_dims(
    backend: str, shape: list[str | int], options: dict[str, Any], axis: int
) -> None:
    """The model has ``symbol`` and ``inputs``, an axis named like a batch, or no time axis."""
    program = models.stream(
        sum_with_state(shape, [1, 3]), pulse=4 if len(shape) < 4 else None, backend=backend, **options
    )
    assert (program.inputs[0].axis, len(program.model.buffers())) == (axis, 1)


def test_other_weights_are_another_program(backend: str) -> None:
    """Those inside of the call: a snapshot of one is not taken for the other's."""
    first, second = models.gru(), models.gru()
    weights = next(tensor for tensor in second.graph.initializer if tensor.name == "w")
    weights.CopyFrom(numpy_helper.from_array(normal_noise(1, 9, 4, seed=99), "w"))
    snapshot = pulse.stream(first, backend=backend).spawn().snapshot()
    with pytest.raises(InputError, match="belongs to another model"):
        pulse.stream(second, backend=backend).spawn().restore(snapshot)
