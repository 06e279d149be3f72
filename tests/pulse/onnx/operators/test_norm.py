"""Normalisations over the axis of time are refused."""

import numpy as np
import pytest

from pulse.errors import PulsifyError
from pulse.loading.format import read_onnx as load
from tests.pulse.cases.build import floats, model, node


@pytest.mark.parametrize("op", ["InstanceNormalization", "GroupNormalization"])
def test_statistics_over_time_are_refused_by_the_name_of_the_node(op: str) -> None:
    x, gains = {"x": floats("norm", 1, 4, 9)}, {"g": np.ones(4, np.float32)}
    attributes = {"num_groups": 2} if op == "GroupNormalization" else {}
    typed = load(model([node(op, "x g g", **attributes)], x, gains, 21, {"x": 2})).analyse()
    with pytest.raises(PulsifyError, match=r"y\.normalised.*mean and variance over time.*running statistics"):
        typed.declutter().pulsify()
