"""Operators of onnxruntime's own domain, as onnxruntime runs them."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from pulse.loading.format import read_onnx as load
from tests.pulse.cases.build import Feeds, floats, model
from tests.pulse.onnx.reference import reference

X, CHANNELS, SQUARE = floats("x", 2, 5, 4), floats("channels", 4), floats("square", 2, 5, 4)
WEIGHTS = floats("weights", 3, 5, 2)


def one_node(kind: str, feeds: Feeds, outputs: str = "y", **attributes: Any) -> ModelProto:
    """One node of the domain."""
    one = helper.make_node(kind, list(feeds), outputs.split(), domain="com.microsoft", **attributes)
    proto = model([one], feeds, outputs=" ".join(filter(None, outputs.split())))
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


@pytest.mark.parametrize(
    ("proto", "feeds"),
    [
        pytest.param(one_node(kind, feeds, **attributes), feeds, id=f"{kind}-{number}")
        for number, (kind, feeds, attributes) in enumerate(
            [
                ("Gelu", {"x": X}, {}),
                ("BiasGelu", {"x": X, "b": CHANNELS}, {}),
                ("FastGelu", {"x": X}, {}),
                ("FastGelu", {"x": X, "b": CHANNELS}, {}),
                ("QuickGelu", {"x": X}, {"alpha": 1.5}),
                ("FusedMatMul", {"x": X, "z": SQUARE}, {"transB": 1, "alpha": 0.5}),
                ("FusedMatMul", {"x": X, "z": SQUARE}, {"transA": 1}),
                ("FusedConv", {"x": X, "w": WEIGHTS}, {"activation": "Relu"}),
                (
                    "FusedConv",
                    {"x": X, "w": WEIGHTS},
                    {"activation": "LeakyRelu", "activation_params": [0.3]},
                ),
                ("SkipLayerNormalization", {"x": X, "s": SQUARE, "g": CHANNELS}, {"epsilon": 1e-5}),
                (
                    "SkipLayerNormalization",
                    {"x": X, "s": SQUARE, "g": CHANNELS, "b": CHANNELS, "c": CHANNELS},
                    {},
                ),
            ]
        )
    ],
)
def test_runs_as_onnxruntime(proto: ModelProto, feeds: Feeds) -> None:
    typed = load(proto).analyse()
    (expected,) = reference(proto, feeds)
    np.testing.assert_allclose(typed.run(feeds)["y"], expected, 1e-4, 1e-5)
