"""f16, bf16 and int8 weights: the rounding itself, and programs that run with it."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, from_dtype

import pulse
from pulse.accuracy import rounding_losses
from pulse.errors import CompileError, InputError
from pulse.facts import Array
from pulse.ops.weight_units import UnitLayout
from pulse.program.native.native_program import NativeProgram
from pulse.program.program import Program
from pulse.program.weights import MIN_ROUNDED_BYTES, as_16_bit, store
from pulse.program.whole_stream import run_whole
from pulse.proof.trial_signals import draw_feeds
from pulse.support.bf16 import from_bf16, to_bf16
from tests.agreement import Expected
from tests.pulse.cases.build import floats, model, node
from tests.pulse.program.static_models import run_as_python
from tests.pulse.program.weight_models import STACKS, assert_lanes_agree_with_streams, recurrence, stack

FORMS = ("bf16", "int8")
ANY = from_dtype(np.dtype(np.float32), allow_subnormal=True)
USUAL = st.floats(-(2.0**100), 2.0**100, width=32)


@given(arrays(np.float32, 16, elements=ANY))
def test_bf16_is_the_nearest_with_halves_to_even(values: Array) -> None:
    rounded = from_bf16(to_bf16(values)).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(rounded), np.isnan(values))
    bits = values.view(np.uint32)
    below = (bits & 0xFFFF0000).view(np.float32).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        step = ((bits & 0x7F800000) | 0).view(np.float32).astype(np.float64) * 2.0**-7
        above = below + np.copysign(np.maximum(step, 2.0**-133), values)
    for value, near, low, high in zip(values.astype(np.float64), rounded, below, above):
        if np.isfinite(value) and abs(value) < 3e38:
            assert abs(near - value) == min(abs(low - value), abs(high - value))
            if abs(low - value) == abs(high - value):
                assert to_bf16(np.float32(near)) % 2 == 0
        elif np.isinf(value):
            assert near == value


@given(arrays(np.uint16, 16))
def test_values_of_bf16_do_not_change(bits: Array) -> None:
    values = from_bf16(bits)
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(to_bf16(values)[numbers], bits[numbers])


@given(
    arrays(
        np.float16, (4, 6), elements=from_dtype(np.dtype(np.float16), allow_nan=False, allow_infinity=False)
    )
)
def test_values_of_f16_do_not_change(halves: Array) -> None:
    as_f16 = as_16_bit(halves.astype(np.float32))
    assert as_f16 is not None
    assert as_f16.dtype == np.float16
    np.testing.assert_array_equal(as_f16.view(np.uint16), halves.view(np.uint16))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(65504, np.float16), (65536, np.uint16), (2.0**-24, np.float16), (2.0**-25, np.uint16)],
    ids=["the largest f16", "beyond f16", "the smallest f16", "below f16"],
)
def test_16_bit_forms_hold_every_weight(value: float, dtype: type[np.generic]) -> None:
    weight = np.full((3, 5), 0.125, np.float32)
    weight[1, 2] = value
    narrow = as_16_bit(weight)
    assert narrow is not None
    assert narrow.dtype == dtype
    np.testing.assert_array_equal(from_bf16(narrow) if dtype == np.uint16 else narrow, weight)


def test_16_bit_forms_hold_a_transposed_weight() -> None:
    weight = np.arange(15, dtype=np.float32).reshape(3, 5).T
    np.testing.assert_array_equal(as_16_bit(weight), weight.astype(np.float16))


@pytest.mark.parametrize("value", [0.1, np.inf, np.nan])
def test_16_bit_forms_are_not_used_for_other_values(value: float) -> None:
    assert as_16_bit(np.full((2, 2), value, np.float32)) is None


def test_16_bit_forms_are_not_used_if_each_loses_a_weight() -> None:
    """The first weight is too fine for bf16, the second too small for f16."""
    assert as_16_bit(np.array([[1 + 2.0**-10, 2.0**-25]], np.float32)) is None


@settings(max_examples=50)
@given(arrays(np.float32, (5, 7), elements=USUAL), st.sampled_from([(0,), (1,)]))
def test_int8_is_within_half_a_step_of_each_unit(weight: Array, summed: tuple[int, ...]) -> None:
    stored = store(weight, "int8", UnitLayout(weight.shape, summed))
    assert stored.scales is not None
    largest = np.abs(weight).max(axis=summed, keepdims=True).astype(np.float64)
    # scales are f32, with fewer bits below their normal range
    slack = 1e-6 * largest + 127 * float(np.finfo(np.float32).smallest_subnormal)
    assert (np.abs(stored.values - weight.astype(np.float64)) <= largest / 254 + slack).all()
    assert np.abs(stored.codes).max() <= 127
    again = store(stored.values, "int8", UnitLayout(weight.shape, summed))
    if largest.min() > 1e-30:  # else codes may change with a scale of few bits
        np.testing.assert_array_equal(again.codes, stored.codes)


def test_int8_refuses_values_beyond_its_range() -> None:
    proto = stack("conv", bad=np.inf)
    with pytest.raises(CompileError, match=r"a \(Conv\): int8 cannot hold infinities.*bf16"):
        pulse.stream(proto, weights="int8")
    with pytest.raises(CompileError, match="unknown weight form 'int4'; choose f32, bf16 or int8"):
        pulse.stream(proto, weights="int4")


def stream_outputs(program: Program, length: int) -> dict[str, Array]:
    feeds = draw_feeds(program.model, length, seed=length)
    return run_whole(program.spawn(), feeds, np.nan)[0]


def round_weights(proto: onnx.ModelProto, form: str) -> onnx.ModelProto:
    """The model with its large weights rounded; this file knows which axes are summed over."""
    summed = {"k3": (0, 2), "k4": (0, 2), "w1": (0,), "w": (2,), "r": (2,)}
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for tensor in changed.graph.initializer:
        value = onnx.numpy_helper.to_array(tensor)
        if value.nbytes >= MIN_ROUNDED_BYTES and value.ndim > 1:
            axes = summed.get(tensor.name, tuple(range(1, value.ndim)))
            new = store(value, form, UnitLayout(value.shape, axes)).values
            assert not np.array_equal(new, value)
            tensor.CopyFrom(onnx.numpy_helper.from_array(new, tensor.name))
    return changed


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("frames", [2, 10])
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_streams_agree_with_the_offline_model_of_rounded_weights(
    name: str, form: str, frames: int, backend: str
) -> None:
    proto = stack(name)
    offline = pulse.load(round_weights(proto, form)).analyse()
    program = pulse.stream(proto, pulse=frames, backend=backend, weights=form)
    for length in (17, 40):
        feeds = draw_feeds(program.model, length, seed=length)
        results = run_whole(program.spawn(), feeds, np.nan)[0]
        Expected(offline, feeds).assert_agrees(results, (length, backend))


def half_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model of a file with f16 weights."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for tensor in changed.graph.initializer:
        value = onnx.numpy_helper.to_array(tensor)
        if value.dtype == np.float32:
            narrow = value.astype(np.float16).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(narrow, tensor.name))
    return changed


def assert_python_agrees(program: NativeProgram) -> None:
    """A step of the kernels as Python gives the compiled results."""
    feed = {port.name: floats("feed", *port.shape) for port in program.inputs}
    compiled = program.spawn().step(feed)
    for output, array in run_as_python(program, feed).items():
        np.testing.assert_allclose(compiled[output], array, 1e-5, 1e-5)


@pytest.mark.parametrize("name", STACKS)
def test_f16_weights_stay_16_bits_and_exact(name: str) -> None:
    proto = half_weights(stack(name))
    offline = pulse.load(proto).analyse()
    program, full = pulse.stream(proto, pulse=4), pulse.stream(stack(name), pulse=4)
    assert isinstance(program, NativeProgram)
    assert isinstance(full, NativeProgram)
    assert program.weights.size < 0.7 * full.weights.size
    assert any(row.kernel.endswith("_f16") for row in program.instructions)
    feeds = draw_feeds(program.model, 33, seed=3)
    Expected(offline, feeds).assert_agrees(run_whole(program.spawn(), feeds, np.nan)[0])
    assert all(error.largest == 0 for error in rounding_losses(program.model, "bf16"))
    assert_python_agrees(program)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STACKS)
def test_kernels_as_python_give_the_compiled_results(name: str, form: str) -> None:
    program = pulse.stream(stack(name), pulse=4, weights=form)
    assert isinstance(program, NativeProgram)
    used = {row.kernel for row in program.instructions}
    assert any(kernel.endswith(form) for kernel in used)
    assert_python_agrees(program)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name", ["conv", *(pytest.param(name, marks=pytest.mark.slow) for name in ("GRU", "LSTM"))]
)
def test_lanes_agree_with_streams_of_their_own(name: str, form: str) -> None:
    assert_lanes_agree_with_streams(pulse.stream(stack(name), pulse=2, weights=form), 6, 1e-4, 1e-5)


@pytest.mark.parametrize("name", STACKS)
def test_weights_of_fewer_bits_save_memory_with_a_small_error(name: str) -> None:
    model = pulse.load(stack(name)).analyse().declutter().pulsify(pulse=2)
    full = model.compile()
    assert isinstance(full, NativeProgram)
    assert "(f32)" in full.listing()[0]
    snapshot = full.spawn().snapshot()
    sizes, floors = [full.weights.size], {"bf16": 38.0, "int8": 30.0}
    for form in FORMS:
        program = model.compile(weights=form)
        assert isinstance(program, NativeProgram)
        assert f"{program.weights.size} bytes of weights ({form})" in program.listing()[0]
        kernels = [row.kernel for row in program.instructions]
        assert (
            f"{sum(kernel.endswith(form) for kernel in kernels)} with {form} weights" in program.listing()[0]
        )
        sizes.append(program.weights.size)
        with pytest.raises(InputError, match="weights"):
            program.spawn().restore(snapshot)
        for error in rounding_losses(model, form):
            assert error.output in {port.name for port in model.outputs}
            assert floors[form] < error.snr_db < 80
            assert 0 < error.largest < 0.2
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_weights_in_the_bodies_of_scans_have_the_form_too(form: str, frames: int) -> None:
    proto = recurrence()
    program = pulse.stream(proto, pulse=frames, weights=form)
    assert isinstance(program, NativeProgram)
    assert f"; {2 * frames} with {form} weights" in program.listing()[0]
    reference = pulse.stream(proto, pulse=frames, weights=form, backend="numpy")
    output, expected, full = (
        stream_outputs(compiled, 5)["y"]
        for compiled in (program, reference, pulse.stream(proto, pulse=frames))
    )
    np.testing.assert_allclose(output, expected, 1e-4, 1e-5)
    assert np.abs(output - full).max() > 1e-3, "rounded weights change what it gives"


def test_transforms_stay_f32() -> None:
    angles = 2 * np.pi / 256 * np.outer(np.arange(256), np.arange(129))
    basis = np.concatenate([np.cos(angles), -np.sin(angles)], 1).astype(np.float32)
    nodes = [node("MatMul", "x basis", "a"), node("MatMul", "a mix", "y")]
    constants = {"basis": basis, "mix": floats("mix", 258, 20)}
    proto = model(nodes, {"x": floats("x", 9, 256)}, constants, stream={"x": 0})
    program = pulse.stream(proto, pulse=1, weights="int8")
    assert isinstance(program, NativeProgram)
    kernels = [row.kernel for row in program.instructions]
    assert "fourier" in kernels
    assert "product_int8" in kernels
    assert "product" not in kernels
    reference = pulse.stream(proto, pulse=1, weights="int8", backend="numpy")
    for output, array in stream_outputs(reference, 5).items():
        np.testing.assert_allclose(stream_outputs(program, 5)[output], array, 1e-4, 1e-3)


@pytest.mark.parametrize("form", ["f32", *FORMS])
def test_f32_and_small_weights_have_no_error(form: str) -> None:
    proto = model(
        [node("Conv", "x k")], {"x": floats("x", 1, 16, 9)}, {"k": floats("k", 16, 16, 3)}, stream={"x": 2}
    )
    pulsed = pulse.load(proto).analyse().declutter().pulsify(pulse=8)
    assert all(error.largest == 0 and error.snr_db == np.inf for error in rounding_losses(pulsed, form))
    program = pulsed.compile(weights=form)
    assert isinstance(program, NativeProgram)
    assert [row.kernel for row in program.instructions if row.kernel.startswith("product")] == ["product"]
