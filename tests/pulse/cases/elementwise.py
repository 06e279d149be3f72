"""Elementwise operators."""

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from pulse.ops.elementwise_functions import ELEMENTWISE
from tests.pulse.cases.build import Case, cases, floats, node, rng

OF_OTHERS = ("Not", "BitwiseNot")
"""Functions of one tensor other than a float one; they have their own cases."""
UNARY = {
    row.names.onnx: row.names.params
    for row in ELEMENTWISE.values()
    if row.arity == 1 and row.names.onnx and row.names.onnx not in OF_OTHERS
}
"""Functions of one float tensor, and their attributes."""
SINCE = {"Mish": 18, "Swish": 24}
"""Operators newer than opset 17, and the first opset that has them."""
BETWEEN = dict.fromkeys(("Log", "Sqrt", "Asin", "Acos", "Atanh"), (0.1, 0.9)) | {"Acosh": (1.1, 1.9)}
"""Functions that are not defined for all numbers, and bounds between which they are."""


def unary() -> Iterator[Case]:
    """One input, default and given attributes."""
    x = floats("unary", 2, 3, 7)
    yield from cases("Identity", [node("Identity", "x")], {"x": x}, stream={"x": 2})
    for op, attributes in UNARY.items():
        numbers = x
        if op in BETWEEN:
            numbers = rng("bounded").uniform(*BETWEEN[op], x.shape).astype(np.float32)
        for name, parameters in ((op, {}), (f"{op}_alpha", {"alpha": 0.37})):
            if parameters.keys() <= attributes.keys():
                opsets = (SINCE.get(op, 17),)
                yield from cases(
                    name, [node(op, "x", **parameters)], {"x": numbers}, opsets=opsets, stream={"x": 2}
                )
    for form in ("none", "tanh"):
        yield from cases(
            f"Gelu_{form}", [node("Gelu", "x", approximate=form)], {"x": x}, opsets=(20,), stream={"x": 2}
        )


def binary() -> Iterator[Case]:
    """Two inputs that broadcast, over old and new opsets."""
    x, y = floats("x", 2, 3, 7), floats("y", 3, 1)
    for op in ("Add", "Sub", "Mul", "Div", "PRelu"):
        yield from cases(op, [node(op, "x w")], {"x": x}, {"w": y}, (7, 9, 17), {"x": 2})
        yield from cases(f"{op}_two", [node(op, "x z")], {"x": x, "z": x[:1] + 1}, stream={"x": 2, "z": 2})
    for op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        yield from cases(op, [node(op, "x w")], {"x": x}, {"w": y}, stream={"x": 2})
    yield from cases("Pow", [node("Pow", "x w")], {"x": np.abs(x)}, {"w": np.float32(1.7)}, (7, 17), {"x": 2})
    whole = rng("ints").integers(-9, 9, (3, 7))
    divisor = np.array([[2], [-3], [5]])
    for name, dtype in (("i32", np.int32), ("i64", np.int64)):
        yield from cases(
            f"Div_{name}",
            [node("Div", "x w")],
            {"x": whole.astype(dtype)},
            {"w": divisor.astype(dtype)},
            stream={"x": 1},
        )
        for fmod in (0, 1):
            yield from cases(
                f"Mod_{name}_{fmod}",
                [node("Mod", "x w", fmod=fmod)],
                {"x": whole.astype(dtype)},
                {"w": divisor.astype(dtype)},
                stream={"x": 1},
            )
    yield from cases(
        "Mod_f32", [node("Mod", "x w", fmod=1)], {"x": x}, {"w": np.float32(0.7)}, stream={"x": 2}
    )
    yield from cases("Equal", [node("Equal", "x w")], {"x": whole}, {"w": np.int64(3)}, (11, 17), {"x": 1})
    truth = whole > 0
    for op in ("And", "Or", "Xor"):
        yield from cases(op, [node(op, "x w")], {"x": truth}, {"w": truth[:, :1]}, (7, 17), {"x": 1})
    yield from cases("Not", [node("Not", "x")], {"x": truth}, stream={"x": 1})


def variadic() -> Iterator[Case]:
    """Operators of any number of inputs."""
    x, w = floats("x", 2, 3, 7), floats("w", 3, 1)
    for op in ("Sum", "Mean", "Min", "Max"):
        yield from cases(op, [node(op, "x z w")], {"x": x, "z": -x}, {"w": w}, (8, 13), {"x": 2, "z": 2})
        yield from cases(f"{op}_one", [node(op, "x")], {"x": x}, stream={"x": 2})
        for count in (9, 17):  # more than one row adds
            weights = {f"w{i}": floats(f"w{i}", 3, 1) for i in range(count - 1)}
            many = [node(op, " ".join(["x", *weights]))]
            yield from cases(f"{op}_of_{count}", many, {"x": x}, weights, stream={"x": 2})
    chosen = x > 0
    yield from cases(
        "Where", [node("Where", "c x w")], {"c": chosen, "x": x}, {"w": w}, (9, 17), {"c": 2, "x": 2}
    )


def clip() -> Iterator[Case]:
    """Bounds as attributes, constants and inputs."""
    x = floats("clip", 2, 7)
    yield from cases(
        "Clip_attributes", [node("Clip", "x", min=-0.3, max=0.4)], {"x": x}, opsets=(7, 9), stream={"x": 1}
    )
    yield from cases("Clip_none", [node("Clip", "x")], {"x": x}, opsets=(7, 13), stream={"x": 1})
    bounds = {"low": np.float32(-0.3), "high": np.float32(0.4)}
    for inputs in ("x low high", "x low", "x _ high"):
        yield from cases(f"Clip_{inputs}", [node("Clip", inputs)], {"x": x}, bounds, (11, 13), {"x": 1})
    yield from cases(
        "Clip_fed", [node("Clip", "x low")], {"x": x, "low": np.array(-0.3, np.float32)}, stream={"x": 1}
    )


def cast() -> Iterator[Case]:
    x = floats("cast", 2, 7) * 3
    for to in (TensorProto.INT32, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.FLOAT):
        yield from cases(f"Cast_{to}", [node("Cast", "x", to=to)], {"x": x}, opsets=(9, 17), stream={"x": 1})
    yield from cases("CastLike", [node("CastLike", "x w")], {"x": x}, {"w": np.int32(1)}, stream={"x": 1})
    yield from cases("Dropout", [node("Dropout", "x")], {"x": x}, opsets=(7, 10, 13), stream={"x": 1})
    masked = node("Dropout", "x", "y mask")
    yield from cases("Dropout_mask", [masked], {"x": x}, None, (12, 13), {"x": 1}, outputs="y mask")
    still = {"ratio": np.array(0, np.float32), "training": np.array(True)}
    operator = node("Dropout", "x ratio training")
    yield from cases("Dropout_zero_ratio", [operator], {"x": x}, still, (13, 22), {"x": 1})
    yield from cases(
        "Dropout_ratio", [node("Dropout", "x r")], {"x": x}, {"r": np.float32(0.5)}, stream={"x": 1}
    )


ALL = (unary, binary, variadic, clip, cast)
