"""Functions of single entries against numpy."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.formulas import sigmoid
from tests.pulse.tensorflow.operator_results import POSITIVE, X, results_of_operator

I = np.array([[7, -7, 3], [5, 0, -4]], np.int32)
SMALL = np.float32([0, 1e-30, 1e-8, 1e-7, 1e-5, 1e-3])
SIDES = np.float32([0, 1, -1, 0.3, -40, 1e-30, -3e38, np.inf, -np.inf, np.nan])


ELEMENTWISE: dict[str, tuple[Sequence[Any], Callable[..., Any]]] = {
    "AddV2": ((X, X[0]), np.add),
    "Sub": ((X, X[0]), np.subtract),
    "Mul": ((X, X[0]), np.multiply),
    "RealDiv": ((X, POSITIVE), np.divide),
    "FloorDiv": ((I, np.int32(2)), np.floor_divide),
    "FloorMod": ((I, np.int32(3)), np.mod),
    "TruncateMod": ((I, np.int32(3)), np.fmod),
    "Maximum": ((X, X[0]), np.maximum),
    "Minimum": ((X, X[0]), np.minimum),
    "SquaredDifference": ((X, X[0]), lambda a, b: (a - b) ** 2),
    "Pow": ((POSITIVE, np.float32(1.5)), np.power),
    "Abs": ((X,), np.abs),
    "Neg": ((X,), np.negative),
    "Square": ((X,), np.square),
    "Sqrt": ((POSITIVE,), np.sqrt),
    "Rsqrt": ((POSITIVE,), lambda a: 1 / np.sqrt(a)),
    "Exp": ((X,), np.exp),
    "Log": ((POSITIVE,), np.log),
    "Log1p": ((np.append(POSITIVE.ravel(), SMALL),), np.log1p),
    "Expm1": ((np.append(X.ravel(), [*SMALL, *-SMALL]).astype(np.float32),), np.expm1),
    "Erfc": ((np.linspace(-5, 9, 99, dtype=np.float32),), np.vectorize(math.erfc, otypes=[np.float64])),
    "Xlog1py": (
        (np.float32([0, 2, 2]), np.float32([-1, 1e-8, 3])),
        lambda a, b: np.where(a == 0, 0, a * np.log1p(b)),
    ),
    "Relu": ((X,), lambda a: np.maximum(a, 0)),
    "Relu6": ((4 * X,), lambda a: np.clip(a, 0, 6)),
    "Elu": ((X,), lambda a: np.where(a < 0, np.expm1(a), a)),
    "Sigmoid": ((X,), sigmoid),
    "Tanh": ((X,), np.tanh),
    "Softplus": ((X,), lambda a: np.log1p(np.exp(a))),
    "Round": ((np.float32([0.5, 1.5, -0.5, 2.4]),), np.rint),
    "Greater": ((X, X[0]), np.greater),
    "NotEqual": ((I, np.int32(7)), np.not_equal),
    "LogicalXor": ((X > 0, X[0] > 0), np.logical_xor),
    "Atan2": ((np.repeat(SIDES, len(SIDES)), np.tile(SIDES, len(SIDES))), np.arctan2),
    "ClipByValue": ((X, np.float32(-0.5), np.float32(0.25)), lambda a, b, c: np.clip(a, b, c)),
    "SelectV2": ((X > 0, X, -X), np.where),
    "ZerosLike": ((X,), np.zeros_like),
    "Softmax": ((X,), lambda a: np.exp(a) / np.exp(a).sum(-1, keepdims=True)),
    "IsFinite": ((np.float32([1, np.inf, np.nan]),), np.isfinite),
}


SMALL_RESULTS = ("Log1p", "Expm1", "Erfc", "Xlog1py", "Atan2")
"""Operators whose small results have all digits."""


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise_operators_give_what_numpy_gives(op: str) -> None:
    inputs, expected = ELEMENTWISE[op]
    (output,) = results_of_operator(op, inputs)
    with np.errstate(all="ignore"):
        numbers = expected(*inputs)
    np.testing.assert_allclose(output, numbers, rtol=2e-6, atol=0 if op in SMALL_RESULTS else 2e-6)


def test_integers_round_to_themselves() -> None:
    (rounded,) = results_of_operator("Round", [I])
    assert rounded.dtype == np.int32
    assert np.array_equal(rounded, I)
