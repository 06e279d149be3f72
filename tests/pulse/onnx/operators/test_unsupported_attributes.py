"""Attributes and inputs that no translator supports are refused, and the error names the node."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pulse.errors import FactError, LoadError
from pulse.loading.onnx_files import read_onnx
from tests.pulse.cases.build import floats, model, node

SCALES = {"s": np.array([1, 1, 2, 1], np.float32), "r": np.zeros(0, np.float32)}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "constants", "message"),
    [
        (
            "Resize",
            "x r s",
            {"mode": "spline"},
            SCALES,
            "'spline' is not supported; use nearest, linear or cubic",
        ),
        (
            "Resize",
            "x r s",
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
            SCALES,
            "region of interest must be 8 numbers",
        ),
        (
            "Resize",
            "x r s",
            {"coordinate_transformation_mode": "wrong"},
            SCALES,
            "'wrong' is not supported; asymmetric",
        ),
        (
            "Resize",
            "x _ _ z",
            {"keep_aspect_ratio_policy": "wrong"},
            {"z": np.array([1, 4, 9, 9])},
            "is not stretch, not_larger or not_smaller",
        ),
        ("Resize", "x", {}, {}, "give one of the two"),
        ("DepthToSpace", "x", {"blocksize": 3}, {}, "do not divide by"),
        ("TopK", "x k", {"axis": 1}, {"k": np.array([5])}, "has fewer"),
        ("LpNormalization", "x", {"p": 3}, {}, "p 3 is not supported"),
        ("STFT", "x k", {}, {"k": np.array(4)}, "must be [batch, time, 1]"),
    ],
)
def test_unsupported_attributes_and_inputs_are_refused(
    op: str, inputs: str, attributes: Mapping[str, Any], constants: Mapping[str, Any], message: str
) -> None:
    x = {"x": floats("refused", 1, 4, 9, 6)}
    with pytest.raises((LoadError, FactError), match=r"^y") as caught:
        read_onnx(model([node(op, inputs, **attributes)], x, {**constants}, 18)).analyse()
    assert message in str(caught.value)
