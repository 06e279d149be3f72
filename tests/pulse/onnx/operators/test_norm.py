"""Normalisations over the time axis are refused; scales of a layer normalisation may be of any float type."""

import numpy as np
import pytest

import pulse
from pulse.errors import FactError, PulsifyError
from pulse.loading.onnx_files import read_onnx
from tests.pulse.cases.build import floats, model, node


@pytest.mark.parametrize("op", ["InstanceNormalization", "GroupNormalization"])
def test_the_refusal_of_statistics_over_time_names_the_node(op: str) -> None:
    x, gains = {"x": floats("norm", 1, 4, 9)}, {"g": np.ones(4, np.float32)}
    attributes = {"num_groups": 2} if op == "GroupNormalization" else {}
    typed = read_onnx(model([node(op, "x g g", **attributes)], x, gains, 21, {"x": 2})).analyse()
    with pytest.raises(PulsifyError, match=r"y\.normalised.*mean and variance over time.*running statistics"):
        typed.declutter().pulsify()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_scale_of_any_float_type_streams(dtype: str) -> None:
    scale = {"g": np.array([1, 2, 0.5, 1], dtype)}
    proto = model([node("LayerNormalization", "x g")], {"x": floats("norm", 1, 9, 4)}, scale, 21, {"x": 1})
    assert pulse.verify(read_onnx(proto), 2).equal


def test_a_scale_of_integers_is_refused() -> None:
    scale = {"g": np.ones(4, np.int64)}
    proto = model([node("LayerNormalization", "x g")], {"x": floats("norm", 1, 9, 4)}, scale, 21, {"x": 1})
    with pytest.raises(FactError, match="its scale and bias must be floats, not i64"):
        read_onnx(proto).analyse()
