"""Models of several layers: streamed equal to offline, and both equal to LiteRT, state and all."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import PulsifyError
from pulse.facts import Array, TypedFact
from pulse.ops.control import Loop
from pulse.ops.scan import Scan
from pulse.runtimes.onnx_check import check_onnx
from tests.noise import normal_noise
from tests.pulse.tflite.layered_models import (
    FEATURES,
    HIDDEN,
    averages,
    biased_convolution,
    blocks,
    convolution_with_variable,
    counting_loop,
    filter_bank,
    frames_of_samples,
    scaled_by_variable,
    stack,
)
from tests.pulse.tflite.litert import assert_agrees_with_litert, calls
from tests.pulse.tflite.recurrent_models import recurrent, recurrent_codes, unfused_layer

CALLS = 12
FEW_FRAMES = (1, 4, 11)
"""Lengths that are proved where each frame takes long: Python runs the body of a scan."""
SAME = 0

STATEFUL: dict[str, Callable[[], bytes]] = {
    "variable": convolution_with_variable,
    "variable of codes": partial(convolution_with_variable, "int8"),
    "variable that nothing assigns": scaled_by_variable,
    "svdf": filter_bank,
    "svdf of rank 1": partial(filter_bank, rank=1),
    "svdf of codes": partial(filter_bank, "int8"),
    "svdf of stored codes": partial(filter_bank, "hybrid"),
    "svdf of stored codes, asymmetric": partial(filter_bank, "hybrid", asymmetric=True),
    "lstm": partial(recurrent, "lstm"),
    "lstm of one frame": partial(recurrent, "lstm", 1),
    "lstm with a limit": partial(recurrent, "lstm", clip=0.3),
    "lstm of stored codes": partial(recurrent, "lstm", stored="int8", clip=0.3),
    "lstm of stored codes, asymmetric": partial(recurrent, "lstm", stored="int8", asymmetric=True),
    "lstm of codes": recurrent_codes,
    "lstm of codes, one frame": partial(recurrent_codes, 1),
    "lstm of codes with a limit": partial(recurrent_codes, clip=0.3, cell_bits=15),
    "rnn": partial(recurrent, "rnn"),
    "rnn of stored codes": partial(recurrent, "rnn", stored="int8"),
    "rnn of stored codes, asymmetric": partial(recurrent, "rnn", stored="int8", asymmetric=True),
    "loop": counting_loop,
    "loop over frames": partial(unfused_layer, 7),
    "loop whose limit is an input": partial(counting_loop, None),
}
OPEN: dict[str, Callable[[], bytes]] = {
    "floats": stack,
    "floats SAME": partial(stack, padding=SAME),
    "floats in strides": partial(stack, stride=2),
    "codes": partial(stack, "int8"),
    "codes SAME": partial(stack, "int8", SAME),
    "blocks": blocks,
    "blocks of codes": partial(blocks, "int8"),
    "blocks of an image": partial(blocks, image=True),
    "lstm": partial(recurrent, "lstm", -1),
    "lstm with a limit": partial(recurrent, "lstm", -1, clip=0.3),
    "lstm of stored codes": partial(recurrent, "lstm", -1, "int8", asymmetric=True),
    "lstm of codes": partial(recurrent_codes, -1),
    "rnn": partial(recurrent, "rnn", -1),
    "loop over frames": unfused_layer,
}


def random_input(rng: np.random.Generator, fact: TypedFact, frames: int = 1) -> Array:
    """Values of an input's type; open sizes are ``frames``."""
    shape = [int(dim) if dim.is_const else frames for dim in fact.shape]
    if fact.dtype.kind in "iu" and fact.dtype.itemsize == 1:
        low = np.iinfo(fact.dtype)
        return rng.integers(low.min, low.max + 1, shape).astype(fact.dtype)
    if fact.dtype == np.int16:
        return rng.integers(-(1 << 15), 1 << 15, shape).astype(fact.dtype)
    if fact.dtype.kind in "iu":
        return np.full(shape, 7, fact.dtype)
    return rng.standard_normal(shape).astype(fact.dtype)


@pytest.mark.parametrize("name", STATEFUL)
def test_calls_agree_with_litert(name: str) -> None:
    data, rng = STATEFUL[name](), np.random.default_rng(0)
    model = pulse.load(data).model
    typed = model.analyse()
    states = {variable.input: variable.initial for variable in model.variables}
    fed = [input_ for input_ in typed.inputs if input_ not in states]
    feeds = [[random_input(rng, typed.inputs[input_]) for input_ in fed] for _ in range(CALLS)]
    for number, (call, expected) in enumerate(zip(feeds, calls(data, feeds), strict=True)):
        outputs = typed.run({**dict(zip(fed, call)), **states})
        states = {variable.input: outputs[variable.output] for variable in model.variables}
        for output, other in zip(outputs.values(), expected):
            assert_agrees_with_litert(output, other, f"{name}, call {number}")


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_variables_are_the_state_of_a_stream(kind: str) -> None:
    data, rng = convolution_with_variable(kind), np.random.default_rng(1)
    program = pulse.stream(data)
    assert [port.name for port in program.inputs] == ["chunk"]
    assert program.pulse == 2
    fact = pulse.load(data).model.analyse().inputs["chunk"]
    chunks = [random_input(rng, fact) for _ in range(CALLS)]
    state = program.spawn()
    for chunk, (expected,) in zip(chunks, calls(data, [[chunk] for chunk in chunks])):
        assert_agrees_with_litert(state.step(chunk)["scores"], expected, kind)


def test_a_variable_that_nothing_assigns_is_a_constant() -> None:
    model = pulse.load(scaled_by_variable()).model
    assert model.variables == ()
    assert list(model.inputs) == ["x"]


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_streams_of_variables_are_proved(kind: str) -> None:
    pulse.verify(convolution_with_variable(kind), lengths=FEW_FRAMES).require()


def test_a_filter_bank_of_codes_streams() -> None:
    pulse.verify(pulse.load(filter_bank("int8"), chunking=pulse.Chunking(axes={"x": 0}))).require()


@pytest.mark.parametrize("name", OPEN)
def test_open_time_streams(name: str) -> None:
    state = name.split()[0] in ("lstm", "rnn", "loop")
    pulse.verify(OPEN[name](), pulse=16, lengths=FEW_FRAMES if state else None).require()


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_blocks_around_a_convolution_are_one_dilated_convolution(kind: str) -> None:
    data, rng = blocks(kind), np.random.default_rng(4)
    typed = pulse.load(data).analyse()
    x = random_input(rng, typed.inputs["x"], 9)
    (expected,) = calls(data, [[x]])[0]
    (output,) = typed.run({"x": x}).values()
    assert_agrees_with_litert(output, expected, kind)
    assert typed.pulsify(pulse=1).outputs[0].delay == 0


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        ({"inclusive": True}, 0, 9),
        ({"first": 1}, 1, 9),
        ({"first": 2, "inclusive": True}, 2, 9),
        ({"max_frames": 4}, 0, 4),
        ({"first": 3, "max_frames": 20}, 3, 9),
        ({"first": 9}, 9, 9),
    ],
    ids=str,
)
def test_a_loop_counts_from_any_frame_to_any_limit(options: dict[str, Any], start: int, end: int) -> None:
    x = normal_noise(1, 9, FEATURES, seed=3)
    (layer,) = pulse.load(unfused_layer()).analyse().run({"x": x[:, start:end]}).values()
    model = pulse.load(unfused_layer(**options)).analyse()
    (output,) = model.run({next(iter(model.inputs)): x}).values()
    expected = np.zeros((1, 9, HIDDEN), np.float32)
    expected[:, start:end] = layer
    np.testing.assert_array_equal(output, expected)
    assert any(isinstance(node.op, Scan) for node in model.graph.nodes)


def test_gathered_frames_and_their_spectra_stream() -> None:
    data = frames_of_samples()
    x = normal_noise(1, 45, seed=5)
    (expected,) = calls(data, [[x]])[0]
    (output,) = pulse.load(data).analyse().run({"x": x}).values()
    assert_agrees_with_litert(output, expected, "frames")
    pulse.verify(data, pulse=8).require()


@pytest.mark.parametrize(
    "data", [stack("int8"), averages(), biased_convolution(64)], ids=["int8", "means", "int16"]
)
def test_codes_are_the_same_in_both_backends(data: bytes) -> None:
    rng = np.random.default_rng(2)
    (fact,) = pulse.load(data).analyse().inputs.values()
    x = random_input(rng, fact, 512)
    outputs_of_backends: list[list[Array]] = []
    for backend in ("numpy", "numba"):
        state = pulse.stream(data, pulse=8, backend=backend).spawn()
        steps = [list(state.step(x[:, start : start + 8]).values()) for start in range(0, 512, 8)]
        outputs_of_backends.append([np.concatenate(blocks, axis=1) for blocks in zip(*steps, strict=True)])
    assert all(map(np.array_equal, *outputs_of_backends))


def test_means_and_sums_on_halves_are_those_of_litert() -> None:
    data, rng = averages(), np.random.default_rng(6)
    model = pulse.load(data).analyse()
    x = random_input(rng, next(iter(model.inputs.values())), 2048)
    outputs = list(model.run({"x": x}).values())
    for output, expected in zip(outputs, calls(data, [[x]])[0], strict=True):
        assert np.array_equal(output, expected)
    sums = (x.astype(np.int64) - 3).sum(axis=2)
    assert min(np.count_nonzero(sums % 84 == 42), np.count_nonzero(sums % 10 == 5)) > 10  # on halves


def test_int16_biases_of_32_and_64_bits_are_equivalent() -> None:
    """LiteRT reads 32 bits as 64 in convolutions, past their end, so only the other file can be compared with it."""
    narrow, wide = (pulse.load(biased_convolution(bits)).analyse() for bits in (32, 64))
    x = random_input(np.random.default_rng(7), narrow.inputs["x"], 200)
    (output,), (same,) = narrow.run({"x": x}).values(), wide.run({"x": x}).values()
    assert np.array_equal(output, same)
    assert len(np.unique(output)) > 100
    assert_agrees_with_litert(same, calls(biased_convolution(64), [[x]])[0][0], "64 bits")


def test_padding_that_depends_on_the_length_is_refused() -> None:
    with pytest.raises(PulsifyError, match="padding before the first frame"):
        pulse.stream(stack("int8", SAME, 2), pulse=4)


@pytest.mark.parametrize(("limit", "layers"), [(1025, 1), (600, 10)], ids=["iterations", "nodes"])
def test_a_long_loop_is_one_op(limit: int, layers: int) -> None:
    """Nothing is left of its iterations, which are unrolled until they are too many."""
    typed = pulse.load(counting_loop(limit, layers)).analyse()
    assert sum(isinstance(node.op, Loop) for node in typed.graph.nodes) == 1
    assert len([node for node in typed.graph.nodes if node.outputs]) < 20


def test_names_are_those_of_the_signature() -> None:
    model = pulse.load(stack()).model
    assert list(model.inputs) == ["sound"]
    assert model.graph.output_names == ["scores"]


def test_open_sizes_can_be_given() -> None:
    assert (
        str(pulse.load(stack(), inputs={"sound": "1,20,1,8"}).analyse().outputs["scores"]) == "1,17,1,4,f32"
    )


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_an_exported_file_agrees_with_the_stream(kind: str) -> None:
    pulsed = pulse.load(stack(kind)).analyse().declutter().pulsify(pulse=4)
    check_onnx(pulsed.to_onnx(), pulsed).require()
