"""The shape arithmetic of exporters."""

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from tests.pulse.cases.build import Case, cases, floats, ints, node


def chains() -> Iterator[Case]:
    """Shape arithmetic as exporters write it."""
    x = floats("chains", 2, 6, 4)
    numbers = {
        "one": np.int64(1),
        "zero": np.int64(0),
        "two": np.int64(2),
        "none": ints(0),
        "open": ints(-1),
    }
    length = [node("Shape", "x", "shape"), node("Gather", "shape one", "t")]
    merged = [
        *length,
        node("Mul", "t two", "tt"),
        node("Unsqueeze", "tt none", "u"),
        node("Concat", "open u two_list", "target", axis=0),
        node("Reshape", "x target"),
    ]
    yield from cases("chain_reshape", merged, {"x": x}, {**numbers, "two_list": ints(2)}, stream={"x": 1})
    positions = [
        *length,
        node("Range", "zero t one", "r"),
        node("Unsqueeze", "r none", "row"),
        node("Cast", "row", "f", to=TensorProto.FLOAT),
        node("Transpose", "x", "xt", perm=[0, 2, 1]),
        node("Add", "xt f"),
    ]
    yield from cases("chain_positions", positions, {"x": x}, numbers, stream={"x": 1})
    later = [*length, node("Add", "t t", "e"), node("Range", "t e two", "y")]
    yield from cases("chain_range_start", later, {"x": x}, numbers, stream={"x": 1})
    back = [*length, node("Neg", "one", "down"), node("Range", "t zero down", "y")]
    yield from cases("chain_range_down", back, {"x": x}, numbers, stream={"x": 1})
    picked = [
        node("Shape", "x", "shape"),
        node("ConstantOfShape", "three", "ones"),
        node("Cast", "ones", "whole", to=TensorProto.INT64),
        node("Equal", "shape open", "unset"),
        node("Where", "unset whole shape", "target"),
        node("Expand", "w target"),
    ]
    extra = {**numbers, "three": ints(3), "w": floats("w", 1, 4)}
    yield from cases("chain_where_expand", picked, {"x": x}, extra, stream={"x": 1})
    half = [
        *length,
        node("Div", "t two", "h"),
        node("Unsqueeze", "h none", "e"),
        node("Slice", "x none e one_list", "y"),
    ]
    yield from cases("chain_half", half, {"x": x}, {**numbers, "one_list": ints(1)}, stream={"x": 1})
    padded = [
        *length,
        node("Mod", "t two", "m"),
        node("Sub", "two m", "d"),
        node("Unsqueeze", "d none", "more"),
        node("Concat", "four more none", "pads", axis=0),
        node("Pad", "x pads"),
    ]
    yield from cases("chain_pad", padded, {"x": x}, {**numbers, "four": ints(0, 0, 0, 0)}, stream={"x": 1})


def in_floats() -> Iterator[Case]:
    """Sizes that are computed in floats: quotients that are rounded, and ranges of floats up to a length."""
    x = floats("in floats", 1, 2, 13)
    length = [node("Shape", "x", "s", start=2, end=3), node("Cast", "s", "f", to=TensorProto.FLOAT)]
    numbers = {
        "three": np.float32([3]),
        "half": np.float32([0.5]),
        "one": np.float32(1),
        "zero": np.float32(0),
        "quarter": np.float32(0.25),
        "whole": ints(3),
        "front": ints(0, 0, 0, 0, 0),
        "begin": ints(0),
        "axis": ints(2),
    }
    for rounding in ("Ceil", "Floor", "Round"):
        padded = [
            *length,
            node("Div", "f three", "q"),
            node("Add", "q half", "h"),
            node(rounding, "h", "r"),
            node("Cast", "r", "i", to=TensorProto.INT64),
            node("Mul", "i whole", "m"),
            node("Sub", "m s", "d"),
            node("Add", "d whole", "more"),
            node("Concat", "front more", "pads", axis=0),
            node("Pad", "x pads"),
        ]
        yield from cases(f"floats_pad_{rounding}", padded, {"x": x}, numbers, stream={"x": 2})
    cut = [
        *length,
        node("Mul", "f half", "q"),
        node("Cast", "q", "e", to=TensorProto.INT64),
        node("Slice", "x begin e axis"),
    ]
    yield from cases("floats_truncated", cut, {"x": x}, numbers, stream={"x": 2})
    scalar = [*length, node("Squeeze", "f", "t")]
    positions = [*scalar, node("Range", "zero t one", "r"), node("Mul", "x r")]
    for name, model, feeds in cases("floats_range", positions, {"x": x}, numbers, stream={"x": 2}):
        if name.endswith("T"):  # onnxruntime takes the float for an integer where it knows the length
            yield name, model, feeds
    finer = [*scalar, node("Mul", "t quarter", "e"), node("Range", "half_once e quarter")]
    yield from cases(
        "floats_range_fraction", finer, {"x": x}, {**numbers, "half_once": np.float32(0.5)}, stream={"x": 2}
    )


ALL = (chains, in_floats)
