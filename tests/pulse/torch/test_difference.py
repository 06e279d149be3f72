"""What is a difference, and which is the first."""

from typing import Any

import numpy as np
import pytest

from pulse.torch.difference import first_difference, wrong_elements

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_another_order_of_summation_is_no_difference(dtype: Any, scale: float) -> None:
    """Sums of large terms that nearly cancel out among them."""
    terms = (scale * RNG.standard_normal((64, 500))).astype(dtype)
    terms[0, :250] = -terms[0, 250:]
    forth, back = terms.cumsum(1, dtype)[:, -1], terms[:, ::-1].cumsum(1, dtype)[:, -1]
    assert (forth != back).any()
    assert wrong_elements(forth, back) is None


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_wrong_element_is_a_difference(dtype: Any, scale: float) -> None:
    expected = (scale * RNG.standard_normal((3, 20))).astype(dtype)
    got = expected.copy()
    got[1, 7] += scale / 20
    wrong = wrong_elements(got, expected)
    assert wrong is not None and np.argwhere(wrong).tolist() == [[1, 7]]


def test_what_is_no_number() -> None:
    """NaN equals NaN, an infinity the same one; neither hides other elements."""
    expected = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert wrong_elements(expected.copy(), expected) is None
    for place in range(4):
        got = expected.copy()
        got[place] = 2.0
        wrong = wrong_elements(got, expected)
        assert wrong is not None and wrong.tolist() == [at == place for at in range(4)]
    assert wrong_elements(np.empty((0, 3), np.float32), np.empty((0, 3), np.float32)) is None


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_integers_and_truth_values_are_exact(dtype: Any) -> None:
    expected = np.array([0, 1, 1], dtype)
    assert wrong_elements(expected.copy(), expected) is None
    wrong = wrong_elements(np.array([0, 1, 0], dtype), expected)
    assert wrong is not None and wrong.tolist() == [False, False, True]


def test_the_first_output_and_frame() -> None:
    """Along the axis that was shorter or longer in the example; an output without one has no frames."""
    x, state = np.zeros((2, 3, 9), np.float32), np.zeros((2, 4), np.float32)
    example = {"y": x[..., :5], "state": state}
    module = {"y": x, "state": state}
    assert first_difference(module, {"y": x.copy(), "state": state.copy()}, example) is None
    wrong = x.copy()
    wrong[0, 2, 8] = 3
    wrong[1, 1, 6] = -0.5
    found = first_difference(module, {"y": wrong, "state": state + 1}, example)
    assert found == "output y, frame 6, at [1, 1, 6]: the module gives 0, the model -0.5"
    found = first_difference(module, {"y": x, "state": state + 1}, example)
    assert found == "output state, at [0, 0]: the module gives 0, the model 1"
    found = first_difference({"flag": np.array([True])}, {"flag": np.array([False])}, {})
    assert found == "output flag, at [0]: the module gives 1, the model 0"


def test_shapes_and_numbers_of_outputs() -> None:
    x = np.zeros((1, 9), np.float32)
    found = first_difference({"y": x, "z": x}, {"y": x, "z": x[:, :5]}, {})
    assert found == "output z: the module gives shape [1, 9], the model [1, 5]"
    assert (
        first_difference({"y": x, "output 1": x}, {"y": x}, {}) == "the module gives 2 outputs, the model 1"
    )
