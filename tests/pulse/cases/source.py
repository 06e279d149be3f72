"""Constants, shapes as tensors, and ranges."""

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from tests.pulse.cases.build import Case, cases, floats, node


def constants() -> Iterator[Case]:
    """Constants in every form, shapes as tensors, ranges."""
    x = floats("constants", 2, 6, 4)
    forms = {"value_float": 2.5, "value_floats": [1.0, 2.0, 3.0, 4.0]}
    for name, value in forms.items():
        nodes = [node("Constant", "", "c", **{name: value}), node("Add", "x c")]
        yield from cases(f"Constant_{name}", nodes, {"x": x}, opsets=(12, 17), stream={"x": 1})
    whole = {"value_int": 1, "value_ints": [2, 0, 1]}
    for name, value in whole.items():
        nodes = [node("Constant", "", "c", **{name: value}), node("Gather", "x c", axis=2)]
        yield from cases(f"Constant_{name}", nodes, {"x": x}, stream={"x": 1})
    yield from cases("Shape", [node("Shape", "x")], {"x": x}, opsets=(7, 15), stream={"x": 1})
    yield from cases(
        "Shape_part", [node("Shape", "x", start=-2, end=3)], {"x": x}, opsets=(15,), stream={"x": 1}
    )
    yield from cases("Size", [node("Size", "x")], {"x": x}, stream={"x": 1})
    filled = [node("Shape", "x", "s"), node("ConstantOfShape", "s")]
    yield from cases("ConstantOfShape", filled, {"x": x}, opsets=(9, 17), stream={"x": 1})
    ends = {"b": np.int64(3), "e": np.int64(17), "d": np.int64(4)}
    steps = [node("Range", "b e d", "r"), node("Cast", "r", "f", to=TensorProto.FLOAT), node("Add", "x f")]
    yield from cases("Range_constant", steps, {"x": x}, ends, stream={"x": 1})


def eye_like() -> Iterator[Case]:
    x = floats("x", 4, 6, 5)
    for k in (-1, 0, 2):
        yield from cases(f"EyeLike_{k}", [node("EyeLike", "x", k=k)], {"x": x[0]}, None, (9,), {"x": 0})


ALL = (constants, eye_like)
