"""Old versions of the default domain load where the operators that they use were already the same."""

import numpy as np
import pytest

from pulse.errors import LoadError
from pulse.loading.onnx_files import read_onnx
from tests.pulse.cases.build import floats, model, node


def test_unchanged_operators_are_read_from_old_opsets() -> None:
    x = floats("old", 2, 3)
    proto = model([node("Relu", "x")], {"x": x}, opset=6)
    np.testing.assert_array_equal(read_onnx(proto).analyse().run(x)["y"], np.maximum(x, 0))


def test_an_operator_that_changed_since_is_refused() -> None:
    x = floats("old", 2, 3)
    proto = model([node("Relu", "x", "h"), node("Add", "h x")], {"x": x}, opset=6)
    with pytest.raises(
        LoadError, match=r"opset 6 is not supported \(Add changed since\); convert it to one of 7"
    ):
        read_onnx(proto)


def test_an_operator_that_was_not_there_is_refused() -> None:
    x = floats("old", 2, 3)
    with pytest.raises(LoadError, match="opset 6 is not supported"):
        read_onnx(model([node("Gelu", "x")], {"x": x}, opset=6))
