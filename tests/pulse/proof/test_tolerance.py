"""The rule of tolerance: differences within rounding error pass, and hardly anything else."""

from collections.abc import Callable

import numpy as np
import pytest

import pulse
from pulse.facts import I64, Array
from pulse.models import TypedModel
from pulse.ops.arithmetic import (
    NATIVE,
    PerturbedArithmetic,
    RecordingArithmetic,
    WideArithmetic,
    unit_roundoff,
)
from pulse.ops.cumulative import CumSum
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.recurrent import Recurrent
from pulse.ops.recurrent_cells import Activation, Cell
from pulse.ops.reduce import ArgReduce, Reduce
from pulse.proof.tolerance import PERTURBED_RUNS, ROUNDING_ULPS, ExpectedOutputs
from tests.noise import normal_noise
from tests.pulse.model_builder import ModelBuilder

pytestmark = pytest.mark.full_proofs

F = np.float32


def agrees_with_change(model: TypedModel, x: Array, change: Callable[[Array], Array], axis: int = 2) -> bool:
    """Whether a result that equals the offline one except for a change agrees."""
    reference = ExpectedOutputs.of(model, {"x": x})
    (name,) = reference.native
    return reference.judge(name, change(reference.native[name].copy()), axis).agrees


def product(inner: int = 256) -> TypedModel:
    """Sums of ``inner`` terms, some of which cancel."""
    builder = ModelBuilder(x=f"1,T,{inner}")
    w = builder.constant(normal_noise(inner, 16, seed=1))
    return builder.model(builder.add("y", MatMul(), builder["x"], w))


def another_order(x: Array, w: Array) -> Array:
    """The same product, its terms added one by one in f32."""
    y = np.zeros((*x.shape[:-1], w.shape[1]), F)
    for k in range(w.shape[0]):
        y = y + x[..., k, None] * w[k]
    return y


def test_sums_in_another_order_agree() -> None:
    """Elements near zero too, which are sums of large terms: 1e-4 of the value does not suffice for these."""
    x = normal_noise(1, 500, 256, scale=9.0)
    model = product()
    reference = ExpectedOutputs.of(model, {"x": x})
    sums = another_order(x, normal_noise(256, 16, seed=1))
    off = np.abs(sums - reference.exact["y"])
    assert (off > 1e-4 * np.abs(reference.exact["y"]) + 1e-5).any()
    judgement = reference.judge("y", sums, 1)
    assert judgement.agrees
    assert 0.05 < judgement.share <= 1
    assert judgement.difference == off.max()


@pytest.mark.parametrize("frame", [0, 250, 499])
def test_an_error_of_1e_4_of_the_scale_is_found(frame: int) -> None:
    """The error is in one element of one frame of one channel."""
    x = normal_noise(1, 500, 256, scale=9.0)

    def add_to_frame(y: Array) -> Array:
        y[0, frame, 3] += 1e-4 * np.abs(y).max()
        return y

    assert agrees_with_change(product(), x, lambda y: y, 1)
    assert not agrees_with_change(product(), x, add_to_frame, 1)


def test_the_tolerance_is_per_channel() -> None:
    """A quiet channel beside a loud one keeps its own scale, and an early frame beside a late one."""
    builder = ModelBuilder(x="1,2,T")
    scales = builder.constant(np.array([[[1e6], [1.0]]], F))
    model = builder.model(builder.apply("mul", builder["x"], scales))

    def add_to_quiet_channel(y: Array) -> Array:
        y[0, 1, 7] += 1e-4
        return y

    assert not agrees_with_change(model, normal_noise(1, 2, 100), add_to_quiet_channel)


def test_a_value_that_cancels_may_be_the_rounding_of_its_terms() -> None:
    """The values and their sum are exactly zero in f64, and the rounding of their mean in f32."""
    builder = ModelBuilder(x="1,T,5")
    scale = builder.constant(np.ones(5, F))
    y = builder.add("y", LayerNorm(2, 0.1), builder["x"], scale)
    model = builder.model(y, builder.add("total", Reduce("sum", (2,), keepdims=True), y))
    x = np.repeat(normal_noise(1, 40, 1), 5, 2)
    reference = ExpectedOutputs.of(model, {"x": x})
    assert not reference.exact["y"].any()
    mean = ((x[..., 0] + x[..., 1] + x[..., 2] + x[..., 3] + x[..., 4]) * F(0.2))[..., None]
    output = ((x - mean) / np.sqrt(F(0.1))).astype(F)
    assert output.any()
    total = output.sum(2, keepdims=True)
    assert reference.judge("y", output, 1).agrees
    assert reference.judge("total", total, 1).agrees
    assert not reference.judge("y", output + F(1e-4), 1).agrees
    assert not reference.judge("total", total + F(1e-3), 1).agrees


def quantised_model() -> TypedModel:
    """Rounded to steps of 1/8, and summed over a window."""
    builder = ModelBuilder(x="1,1,T")
    eight = builder.constant(np.array(8.1, F))
    steps = builder.apply("round", builder.apply("mul", builder["x"], eight))
    return builder.model(builder.apply("div", steps, eight))


def test_a_decision_that_rounding_turns_excuses_only_itself() -> None:
    """At a tie within rounding the next step is allowed; everywhere else it is not."""
    x = normal_noise(1, 1, 400)
    x[0, 0, 100] = np.nextafter(F(3.5 / 8.1), F(1))
    value = float(x[0, 0, 100]) * float(F(8.1))
    assert abs(value - 3.5) < 1e-6

    def next_step(frame: int) -> Callable[[Array], Array]:
        def change(y: Array) -> Array:
            product = float(x[0, 0, frame]) * float(F(8.1))
            other = np.floor(product) if np.rint(product) > product else np.ceil(product)
            y[0, 0, frame] = F(other) / F(8.1)
            return y

        return change

    assert agrees_with_change(quantised_model(), x, next_step(100))
    assert not agrees_with_change(quantised_model(), x, next_step(101))


def test_integers_must_be_equal() -> None:
    """But an index whose two values are equal within rounding may be the other one."""
    builder = ModelBuilder(x="1,T,3")
    model = builder.model(
        builder.add(
            "y",
            ArgReduce("max", 2, True),
            builder.add("p", MatMul(), builder["x"], builder.constant(normal_noise(3, 2))),
        )
    )
    w = normal_noise(3, 2)
    x = normal_noise(1, 50, 3)
    direction = (w[:, 1] - w[:, 0]) / np.sum((w[:, 1] - w[:, 0]) ** 2)
    gap = x[0, 20] @ w[:, 1] - x[0, 20] @ w[:, 0]
    x[0, 20] -= gap * direction
    scores = x[0].astype(np.float64) @ w
    assert abs(scores[20, 0] - scores[20, 1]) < 1e-6

    def other(frame: int) -> Callable[[Array], Array]:
        def change(y: Array) -> Array:
            y[0, frame] = 1 - y[0, frame]
            return y

        return change

    assert agrees_with_change(model, x, other(20), 1)
    assert not agrees_with_change(model, x, other(21), 1)


def test_whole_numbers_are_exact() -> None:
    """Counters and what is computed from them need no rounding, so nothing excuses a wrong one."""
    builder = ModelBuilder(x="1,1,T")
    count = builder.add(
        "count",
        CumSum(2, False, False),
        builder.apply(
            "add", builder.apply("mul", builder["x"], builder.constant(F(0.0))), builder.constant(F(1.0))
        ),
    )
    row = builder.apply("floor", builder.apply("div", count, builder.constant(F(7.0))))
    model = builder.model(builder.add("row", Cast(I64), row))
    x = normal_noise(1, 1, 5000)
    reference = ExpectedOutputs.of(model, {"x": x})
    expected = (np.arange(1, 5001) // 7)[None, None]
    np.testing.assert_array_equal(reference.exact["row"], expected)

    def subtract_one(y: Array) -> Array:
        y[0, 0, 4200] -= 1
        return y

    assert not agrees_with_change(model, x, subtract_one)


def test_the_sine_of_a_large_angle_is_as_uncertain_as_the_angle() -> None:
    """The angle has units of 1e5, and so has the tolerance of its sine."""
    builder = ModelBuilder(x="1,1,T")
    model = builder.model(builder.apply("sin", builder.apply("mul", builder["x"], builder.constant(F(1e5)))))
    x = normal_noise(1, 1, 300)
    angle = (x.astype(np.float64) * float(F(1e5)))[..., None]
    unit = unit_roundoff(np.dtype(F)) * np.abs(angle)
    near = np.sin(angle + unit * [-1, 1])[..., 0].astype(F)
    assert agrees_with_change(model, x, lambda y: near)
    assert not agrees_with_change(model, x, lambda y: np.sin(angle + 100 * unit)[..., 0].astype(F))


def test_the_inside_of_a_gate_is_rounded() -> None:
    """(1 - z) * n of a GRU with z near 1 loses digits that no error of its inputs explains."""
    builder = ModelBuilder(x="T,1,1")
    cell = Cell("gru", (Activation("sigmoid"), Activation("tanh")))
    w = builder.constant(np.array([[0.0], [0.0], [0.5]], F))
    r = builder.constant(np.zeros((3, 1), F))
    b = builder.constant(np.array([7.0, 0, 0, 0, 0, 0], F))
    model = builder.model(builder.add("gru", Recurrent(cell, 1, False, None, ()), builder["x"], w, r, b))
    x = np.ones((1, 1, 1), F)
    z, n = 1 / (1 + np.exp(-F(7.0))), np.tanh(F(0.5))
    output = (n - F(z) * n).reshape(1, 1, 1).astype(F)  # digits lost, as a kernel may
    reference = ExpectedOutputs.of(model, {"x": x})
    (name,) = reference.native
    exact = float(reference.exact[name].item())
    assert abs(float(output.item()) - exact) > 16 * unit_roundoff(np.dtype(F)) * exact
    assert reference.judge(name, output, 0).agrees


def test_overflow_and_nan_need_overflow_and_nan_in_the_model() -> None:
    """Infinite in f32 though not in f64: the stream may be so too, but no other value is excused."""
    builder = ModelBuilder(x="1,1,T")
    model = builder.model(builder.apply("exp", builder["x"]))
    x = np.array([[[1.0, 100.0, np.nan, -200.0]]], F)
    with np.errstate(all="ignore"):
        reference = ExpectedOutputs.of(model, {"x": x})
    (name,) = reference.native
    good = reference.native[name]
    assert np.isinf(good[0, 0, 1])
    assert np.isfinite(reference.exact[name][0, 0, 1])
    assert reference.judge(name, good, 2).agrees
    for frame, value in ((1, 5.0), (2, 0.0), (0, np.nan), (0, np.inf), (3, np.nan)):
        wrong = good.copy()
        wrong[0, 0, frame] = value
        assert not reference.judge(name, wrong, 2).agrees, (frame, value)
    denormal = good.copy()
    denormal[0, 0, 3] = 0.0
    assert reference.judge(name, denormal, 2).agrees


def test_shapes_and_types_must_fit() -> None:
    model = product(4)
    reference = ExpectedOutputs.of(model, {"x": normal_noise(1, 5, 4)})
    good = reference.native["y"]
    assert not reference.judge("y", good[:, :4], 1).fits
    judgement = reference.judge("y", good.astype(np.float64), 1)
    assert not judgement.agrees
    assert judgement.share == float("inf")


def test_perturbed_runs_repeat_and_wide_runs_are_exact() -> None:
    """f64 is exact where f32 is not; perturbed runs repeat with their seed, and differ without."""
    model, x = product(), normal_noise(1, 20, 256)
    native, recording = model.run({"x": x})["y"], RecordingArithmetic()
    wide = model.run({"x": x}, arithmetic=recording)["y"]
    assert (native.dtype, wide.dtype) == (F, np.float64)
    np.testing.assert_array_equal(
        wide, x.astype(np.float64) @ normal_noise(256, 16, seed=1).astype(np.float64)
    )
    np.testing.assert_array_equal(wide, model.run({"x": x}, arithmetic=WideArithmetic())["y"])
    np.testing.assert_array_equal(native, model.run({"x": x}, arithmetic=NATIVE)["y"])
    runs = [
        model.run({"x": x}, arithmetic=PerturbedArithmetic(recording.tape, 16, seed))["y"]
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).all()
    change = np.abs(runs[0] - wide).max() / np.abs(wide).max()
    assert 1e-7 < change < 1e-5


def test_copied_values_are_not_perturbed() -> None:
    """A table's rows, read by index, are what they are."""
    builder = ModelBuilder(x="1,T,i64")
    table = builder.constant(normal_noise(9, 4))
    model = builder.model(builder.add("rows", Gather(0), table, builder["x"]))
    x = np.random.default_rng(0).integers(0, 9, (1, 30))
    recording = RecordingArithmetic()
    wide = model.run({"x": x}, arithmetic=recording)["rows"]
    np.testing.assert_array_equal(
        model.run({"x": x}, arithmetic=PerturbedArithmetic(recording.tape, 16, 0))["rows"], wide
    )


def test_a_half_precision_model_has_its_own_scale() -> None:
    """Units are those of each wire's type."""
    builder = ModelBuilder(x="1,T,8,f16")
    w = builder.constant(normal_noise(8, 3).astype(np.float16))
    model = builder.model(builder.add("y", MatMul(), builder["x"], w))
    x = normal_noise(1, 30, 8).astype(np.float16)
    reference = ExpectedOutputs.of(model, {"x": x})
    near = np.nextafter(reference.native["y"], np.float16(100))
    assert reference.judge("y", near, 1).agrees
    assert not reference.judge("y", (reference.native["y"] * np.float16(1.05)), 1).agrees


def quantised_layers(bits: int, gain: Array | None = None) -> TypedModel:
    """Six products whose results are rounded to codes, as in a model that was quantised with constant scales.

    gain  what each channel is multiplied by at the end
    """
    builder = ModelBuilder(x="1,T,16")
    y, largest = builder["x"], 2.0 ** (bits - 1) - 1
    for layer in range(6):
        weights = builder.constant(normal_noise(16, 16, seed=layer, scale=0.25))
        product = builder.add(f"product{layer}", MatMul(), y, weights)
        scaled = builder.apply("mul", product, builder.constant(F(largest / 4)), name=f"scaled{layer}")
        codes = builder.apply("round", scaled, name=f"codes{layer}")
        y = builder.apply("mul", codes, builder.constant(F(4 / largest)), name=f"values{layer}")
    return builder.model(
        y if gain is None else builder.apply("mul", y, builder.constant(gain), name="gained")
    )


@pytest.mark.parametrize("bits", [12, 16])
def test_codes_that_turn_in_other_places_than_in_the_runs_agree(bits: int) -> None:
    """A few of thousands of elements are further off than in any of the perturbed runs."""
    model = quantised_layers(bits)
    (name,) = model.outputs
    x = normal_noise(1, 400, 16)
    reference, recording = ExpectedOutputs.of(model, {"x": x}), RecordingArithmetic()
    model.run({"x": x}, arithmetic=recording)
    exact, allowed = reference.allowance(name, 1, PERTURBED_RUNS)
    strays = 0
    for seed in range(1000, 1008):
        noisy = PerturbedArithmetic(recording.tape, ROUNDING_ULPS, seed)
        stream = model.run({"x": x}, arithmetic=noisy)[name].astype(F)
        strays += np.count_nonzero(np.abs(stream - exact) > allowed)
        assert reference.judge(name, stream, 1).agrees
    assert strays


@pytest.mark.parametrize("bits", [8, 12, 16])
def test_more_or_larger_differences_than_codes_cause_are_wrong(bits: int) -> None:
    model = quantised_layers(bits)
    (name,) = model.outputs
    reference = ExpectedOutputs.of(model, {"x": normal_noise(1, 400, 16)})
    good, step = reference.native[name], F(8 / 2**bits)
    assert reference.judge(name, good, 1).agrees
    assert not reference.judge(name, good + 2 * step, 1).agrees
    for steps in (30, -30):
        wrong = good.copy()
        wrong[0, 200, 5] += steps * step
        assert not reference.judge(name, wrong, 1).agrees


@pytest.mark.parametrize("count", [1, 8])
def test_codes_of_loud_channels_excuse_nothing_in_a_quiet_one(count: int) -> None:
    model = quantised_layers(16, np.where(np.arange(16) == 5, F(1e-5), F(1)))
    reference = ExpectedOutputs.of(model, {"x": normal_noise(1, 400, 16)})
    wrong = reference.native["gained"].copy()
    wrong[0, 100 : 100 + count, 5] = 0
    assert not reference.judge("gained", wrong, 1).agrees


def test_a_drift_in_a_sum_over_a_long_stream_is_found() -> None:
    """Terms in f32, the sum in f64, as kernels have it: what drifts is found, however late."""
    builder = ModelBuilder(x="1,1,T")
    model = builder.model(builder.add("total", CumSum(2, False, False), builder["x"]))
    x = normal_noise(1, 1, 20_000) + F(0.5)
    assert agrees_with_change(model, x, lambda y: np.cumsum(x, 2, dtype=np.float64).astype(F))
    assert not agrees_with_change(
        model, x, lambda y: np.cumsum(x * F(1.00001), 2, dtype=np.float64).astype(F)
    )


@pytest.mark.parametrize(
    ("points", "seed", "lengths"),
    [
        (512, 0, None),
        *((512, seed, (513, 896)) for seed in range(1, 4)),
        *((64, seed, (513, 896)) for seed in range(4)),
        *(pytest.param(512, seed, None, marks=pytest.mark.slow) for seed in range(1, 4)),
    ],
)
def test_phases_that_rounding_decides_are_equal(
    points: int, seed: int, lengths: tuple[int, ...] | None
) -> None:
    """A mirrored first frame is real, so rounding chooses the sign of half of its phases, which are pi.

    Some imaginary parts of short transforms cancel exactly in one order of their terms.
    """
    polar = pulse.front.stft(points, points // 2, window="hann", parts="polar")
    assert pulse.verify(polar, seed=seed, lengths=lengths).equal


def test_an_equality_that_rounding_turns_excuses_only_itself() -> None:
    """A sum that cancels may be zero in another order of its terms; others, and sums of whole numbers, may not."""
    builder = ModelBuilder(x="1,T,256")
    weights = builder.constant(np.ones((256, 1), F))
    total = builder.add("total", MatMul(), builder["x"], weights)
    model = builder.model(builder.apply("equal", total, builder.constant(np.zeros((1, 1, 1), F))))
    x = normal_noise(1, 40, 256)
    x[0, 7, 1:] = np.repeat(x[0, 7, 1:129], 2)[:255] * np.resize([1, -1], 255)
    x[0, 7, 0] = np.nextafter(x[0, 7, 255], F(9)) * F(-1)
    whole = np.round(x * 8)

    def turn(frame: int) -> Callable[[Array], Array]:
        def change(y: Array) -> Array:
            y[0, frame] = ~y[0, frame]
            return y

        return change

    assert 0 < abs(x[0, 7].astype(np.float64).sum()) < 1e-6
    assert agrees_with_change(model, x, turn(7), axis=1)
    assert not agrees_with_change(model, x, turn(8), axis=1)
    assert not agrees_with_change(model, whole, turn(7), axis=1)


def test_rounding_of_one_plus_erf_agrees_in_the_tail_of_gelu() -> None:
    """There 1 + erf(x) is a unit in the last place of 1, or none, in f32."""
    builder = ModelBuilder(x="1,2,T")
    gelu = builder.model(builder.add("y", Elementwise("gelu", (0.0,)), builder["x"]))
    x = np.full((1, 2, 9), -5.6, F)
    assert agrees_with_change(gelu, x, np.zeros_like)
    assert not agrees_with_change(gelu, x, lambda y: y - F(1e-5))


def test_rounded_log_softmax_sums_agree_if_one_class_dominates() -> None:
    """The logarithm of its share is that of 1 + tiny."""
    builder = ModelBuilder(x="1,2,T")
    log_softmax = builder.model(builder.add("y", Softmax(1, log=True), builder["x"]))
    x = np.stack([np.full(9, 16.5, F), np.zeros(9, F)])[None]
    assert agrees_with_change(log_softmax, x, lambda y: np.where(y > -1, 0, y).astype(F))
    assert not agrees_with_change(log_softmax, x, lambda y: np.where(y > -1, F(-1e-5), y).astype(F))
