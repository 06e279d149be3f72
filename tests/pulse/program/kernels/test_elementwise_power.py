"""Powers in vectors: the error in ulp, and the corners of C."""

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from tests.pulse.cases.build import model, node

CORNERS = np.array(
    [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 7, -7, 1e30, -1e30], np.float32
)


def powers(x: Array, y: Array) -> Array:
    """x**y of frames [T, n] by the numba backend, y a table of n."""
    proto = model([node("Pow", "x e")], {"x": x}, {"e": y}, stream={"x": 0})
    program = pulse.stream(proto, pulse=len(x))
    return program.spawn().step(x)["y"]


@pytest.mark.parametrize("exponent", [0.3, -0.5, 0.5, 2.0, 3.0, 1.7, -1.0, 1 / 3, 10.0, -7.0])
def test_the_error_in_ulp_is_bounded_by_the_exponent(exponent: float) -> None:
    x = np.exp(np.linspace(-60, 60, 1 << 15) / max(1, abs(exponent))).astype(np.float32)[None]
    exponents = np.full(x.shape[1], exponent, np.float32)
    exponents[0] = np.nextafter(exponents[0], np.float32(0))  # no constant exponent: the general function
    for table in (exponents, exponents[1:2]):
        expected = np.power(x.astype(np.float64), table.astype(np.float64))
        step = np.spacing(expected.astype(np.float32)).astype(np.float64)
        assert (np.abs(powers(x, table) - expected) / step).max() <= 1 + 0.6 * abs(exponent)


def test_corners_agree_with_numpy() -> None:
    x, y = (grid.ravel().astype(np.float32) for grid in np.meshgrid(CORNERS, CORNERS))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    expected = np.where(np.abs(expected) < np.finfo(np.float32).tiny, 0, expected)
    np.testing.assert_allclose(powers(x[None], y)[0], expected, rtol=1e-6)
