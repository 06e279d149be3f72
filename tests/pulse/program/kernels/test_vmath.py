"""Errors of the vector functions over dense sweeps, compiled, and the same values as plain Python."""

import math

import numpy as np
import pytest

from tests.pulse.program.kernels import ulp
from tests.pulse.program.kernels.ulp import compiled_values

POINTS = 1 << 17
TINY = 1.2e-38
erf = np.vectorize(math.erf, otypes=[np.float64])


def linear(low, high):
    return np.linspace(low, high, POINTS).astype(np.float32)


def magnitudes(low, high):
    """Both signs, evenly spread in logarithm."""
    size = np.exp(np.linspace(math.log(low), math.log(high), POINTS // 2))
    return np.concatenate([-size, size]).astype(np.float32)


FUNCTIONS = {
    "vexp": (1.1, np.exp, [linear(-87, 88.7), magnitudes(1e-9, 80)]),
    "vexpm1": (1.6, np.expm1, [linear(-40, 88.7), magnitudes(1e-30, 80)]),
    "vexpm1_negative": (1.0, np.expm1, [linear(-40, 0), -np.abs(magnitudes(1e-30, 80))]),
    "vlog": (1.2, np.log, [linear(0.5, 2), linear(1e-5, 100), np.abs(magnitudes(2e-38, 3e38))]),
    "log1p_unit": (3.2, np.log1p, [linear(0, 1), np.abs(magnitudes(1e-30, 1))]),
    "vsoftplus": (3.6, lambda x: np.logaddexp(0, x), [linear(-85, 100)]),
    "vtanh": (2.5, np.tanh, [linear(-12, 12), magnitudes(1e-30, 30)]),
    "vsigmoid": (2.3, lambda x: 1 / (1 + np.exp(-x)), [linear(-85, 40)]),
    "vmish": (3.6, lambda x: x * np.tanh(np.logaddexp(0, x)), [linear(-80, 40), magnitudes(1e-20, 9)]),
    "verf": (5.0, erf, [linear(-6, 6), magnitudes(1e-30, 4)]),
    "verfc": (5.3, np.vectorize(math.erfc, otypes=[np.float64]), [linear(-6, 9.1), magnitudes(1e-30, 9)]),
    "vsin": (1.5, np.sin, [linear(-3.1, 3.1), magnitudes(1e-20, 1.5)]),
    "vcos": (1.6, np.cos, [linear(-1.5, 1.5), linear(1.6, 3.2)]),
    "vtan": (3.3, np.tan, [linear(-3.1, 3.1), magnitudes(1e-20, 1.5)]),
    "vasin": (2.4, np.arcsin, [linear(-1, 1), magnitudes(1e-20, 1)]),
    "vacos": (1.2, np.arccos, [linear(-1, 1), magnitudes(1e-20, 1)]),
    "vatan": (1.9, np.arctan, [linear(-4, 4), magnitudes(1e-30, 1e30)]),
    "vsinh": (1.7, np.sinh, [linear(-89, 89), magnitudes(1e-30, 80)]),
    "vcosh": (1.5, np.cosh, [linear(-89, 89)]),
    "vlog1p": (1.7, np.log1p, [linear(-0.999, 2), np.abs(magnitudes(1e-30, 1e30))]),
    "vasinh": (2.4, np.arcsinh, [linear(-4, 4), magnitudes(1e-30, 1e30)]),
    "vacosh": (2.1, np.arccosh, [linear(1, 4), 1 + np.abs(magnitudes(1e-6, 1e30))[: POINTS // 2]]),
    "vatanh": (2.7, np.arctanh, [linear(-0.9999, 0.9999), magnitudes(1e-30, 0.99)]),
    "vsign": (0, np.sign, [linear(-2, 2)]),
}


def ulp_errors(outputs, expected):
    step = np.maximum(
        np.spacing(np.abs(expected.astype(np.float32))).astype(np.float64), np.spacing(np.float32(TINY))
    )
    return np.abs(outputs - expected) / step


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_in_ulp_is_as_stated(name: str) -> None:
    limit, reference, sweeps = FUNCTIONS[name]
    for x in sweeps:
        assert ulp_errors(compiled_values(name, x), reference(x.astype(np.float64))).max() <= limit


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_python_form_has_errors_as_small(name: str) -> None:
    limit, reference, sweeps = FUNCTIONS[name]
    for x in sweeps:
        few = np.ascontiguousarray(x[:: len(x) // 512][:512])
        assert (
            ulp_errors(compiled_values(name, few, python=True), reference(few.astype(np.float64))).max()
            <= limit + 1
        )


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"log1p_unit"}))
@pytest.mark.parametrize("python", [True, False])
def test_infinities_and_nan_agree_with_numpy(name: str, python: bool) -> None:
    x = np.resize(np.array([0.0, np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32), 48)
    x = np.minimum(x, 0) if name == "vexpm1_negative" else x
    inputs = (
        x
        if name not in ("vsin", "vcos", "vtan")
        else x[np.abs(np.nan_to_num(x, posinf=0, neginf=0)) < 1e5][:16]
    )
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][1](inputs.astype(np.float64)).astype(np.float32)
    inputs, expected = inputs[: len(inputs) // 16 * 16], expected[: len(inputs) // 16 * 16]
    np.testing.assert_allclose(compiled_values(name, inputs, python), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["vtanh", "verf"])
def test_tanh_and_erf_reach_one_and_never_exceed_it(name: str) -> None:
    assert np.abs(compiled_values(name, linear(-15, 15))).max() == 1


@pytest.mark.parametrize("name", ["vsin", "vcos"])
@pytest.mark.parametrize("top", [10, 1e3, 1e5])
def test_sines_of_large_arguments_are_accurate(name: str, top: float) -> None:
    x = linear(-top, top)
    assert np.abs(compiled_values(name, x) - FUNCTIONS[name][1](x.astype(np.float64))).max() < 1.5e-7


@pytest.mark.parametrize("function", ulp.FUNCTIONS, ids=lambda function: function.name)
def test_no_error_is_above_the_table(function: ulp.Function) -> None:
    """One in some thousands of all float32 is measured."""
    worst, where = function.largest_error(step=20011)
    assert 0.5 < worst <= ulp.stated_errors()[function.name], f"{worst} ulp at {where}"


@pytest.mark.slow
@pytest.mark.parametrize("function", ulp.FUNCTIONS, ids=lambda function: function.name)
def test_the_table_equals_the_measurement(function: ulp.Function) -> None:
    """The test takes a hundredth of the numbers, as the table itself; all of them take about 60 s."""
    worst, _ = function.largest_error(ulp.STEP)
    assert ulp.stated_errors()[function.name] - 0.2 < worst <= ulp.stated_errors()[function.name]
