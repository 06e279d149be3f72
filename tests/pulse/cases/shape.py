"""Changes of shape, slices, pads, lookups, and the shape arithmetic of exporters."""

from collections.abc import Iterator, Sequence

import numpy as np
from onnx import TensorProto

from tests.pulse.cases.build import Case, cases, floats, node, rng


def _ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def reshape() -> Iterator[Case]:
    """Targets with copies and an open dim; time alone, merged and split."""
    x = floats("reshape", 2, 6, 4)
    targets: Sequence[tuple[int, ...]] = [
        (0, -1),
        (2, -1, 2, 2),
        (-1, 4),
        (0, 0, 2, 2),
        (-1,),
        (2, 3, -1, 4),
        (0, -1, 8),
    ]
    for target in targets:
        constants = {"s": _ints(*target)}
        yield from cases(
            f"Reshape_{target}", [node("Reshape", "x s")], {"x": x}, constants, (7, 17), {"x": 1}
        )
    for axis in (0, 1, 2, 3, -1):
        yield from cases(
            f"Flatten_{axis}", [node("Flatten", "x", axis=axis)], {"x": x}, opsets=(11, 13), stream={"x": 1}
        )
    empty = np.zeros((0, 4), np.float32)
    made = node("Reshape", "x s", allowzero=1)
    yield from cases("Reshape_allowzero", [made], {"x": empty}, {"s": _ints(4, 0)})


def transpose() -> Iterator[Case]:
    """Orders of axes; axes of size 1 added and removed."""
    x = floats("transpose", 2, 5, 1, 3)
    yield from cases("Transpose", [node("Transpose", "x")], {"x": x}, stream={"x": 1})
    for perm in ((1, 0, 2, 3), (3, 1, 0, 2), (0, 2, 1, 3)):
        yield from cases(f"Transpose_{perm}", [node("Transpose", "x", perm=perm)], {"x": x}, stream={"x": 1})
    for axes in ((0,), (1, 3), (-1,), (5, 0)):
        made = node("Unsqueeze", "x", axes=axes)
        yield from cases(f"Unsqueeze_{axes}", [made], {"x": x}, opsets=(7, 11), stream={"x": 1})
        yield from cases(
            f"Unsqueeze_{axes}", [node("Unsqueeze", "x a")], {"x": x}, {"a": _ints(*axes)}, (13,), {"x": 1}
        )
    narrow = x[:1]
    yield from cases("Squeeze", [node("Squeeze", "x")], {"x": narrow}, opsets=(11, 13), stream={"x": 1})
    yield from cases(
        "Squeeze_axes", [node("Squeeze", "x", axes=[0, 2])], {"x": narrow}, opsets=(11,), stream={"x": 1}
    )
    yield from cases(
        "Squeeze_axes", [node("Squeeze", "x a")], {"x": narrow}, {"a": _ints(-2, 0)}, (13,), {"x": 1}
    )


def expand() -> Iterator[Case]:
    """Broadcasts and repeats, constant and by the length of another tensor."""
    x = floats("expand", 3, 1)
    for target in ((3, 4), (2, 1, 4), (1,), (3, 1)):
        yield from cases(
            f"Expand_{target}", [node("Expand", "x s")], {"x": x}, {"s": _ints(*target)}, (8, 13), {"x": 0}
        )
    like = [node("Shape", "z", "shape"), node("Expand", "x shape")]
    yield from cases("Expand_like", like, {"z": floats("z", 2, 3, 5)}, {"x": x}, stream={"z": 2})
    for repeats in ((1, 1), (1, 3), (2, 2)):
        yield from cases(
            f"Tile_{repeats}", [node("Tile", "x r")], {"x": x}, {"r": _ints(*repeats)}, (7, 13), {"x": 0}
        )


def slices() -> Iterator[Case]:
    """Random bounds, negative ones, those beyond the ends, and steps of both signs."""
    x = floats("slice", 3, 12, 5)
    far = 2**63 - 1
    bounds = [
        (0, far, 1),
        (2, 9, 1),
        (-5, far, 1),
        (0, -3, 1),
        (-7, -2, 1),
        (3, 3, 1),
        (1, 100, 3),
        (0, far, 2),
        (20, 30, 1),
        (-100, 4, 1),
        (11, 0, -1),
        (-1, -far - 1, -1),
        (8, 2, -2),
        (100, -100, -3),
        (-2, -9, -2),
    ]
    for start, end, step in bounds:
        constants = {"b": _ints(start), "e": _ints(end), "a": _ints(1), "s": _ints(step)}
        made = node("Slice", "x b e a s")
        yield from cases(f"Slice_{start}_{end}_{step}", [made], {"x": x}, constants, (10, 17), {"x": 1})
        if step == 1:
            old = node("Slice", "x", starts=[start], ends=[end], axes=[1])
            yield from cases(f"Slice_{start}_{end}", [old], {"x": x}, opsets=(9,), stream={"x": 1})
    two = {"b": _ints(1, 1), "e": _ints(2, -1), "a": _ints(-1, 0)}
    yield from cases("Slice_two_axes", [node("Slice", "x b e a")], {"x": x}, two, stream={"x": 1})
    yield from cases("Slice_no_axes", [node("Slice", "x b e")], {"x": x}, two, stream={"x": 1})
    whole = [
        node("Shape", "x", "shape"),
        node("Gather", "shape one", "length"),
        node("Slice", "table zero length"),
    ]
    table = {"table": floats("table", 20, 3), "one": _ints(1), "zero": _ints(0)}
    yield from cases("Slice_table", whole, {"x": x}, table, stream={"x": 1})


def split() -> Iterator[Case]:
    """Equal parts, given parts, and a number of parts that does not divide."""
    x = floats("split", 2, 6, 8)
    equal = node("Split", "x", "y z", axis=1)
    yield from cases("Split_equal", [equal], {"x": x}, opsets=(7, 13), stream={"x": 2}, outputs="z y")
    given = node("Split", "x", "y z", axis=1, split=[1, 5])
    yield from cases("Split_sizes", [given], {"x": x}, opsets=(11,), stream={"x": 2}, outputs="y z")
    sized = node("Split", "x s", "y z w", axis=-2)
    yield from cases("Split_sizes", [sized], {"x": x}, {"s": _ints(1, 3, 2)}, (13, 18), {"x": 2}, "y z w")
    count = node("Split", "x", "y z w", axis=2, num_outputs=3)
    yield from cases("Split_count", [count], {"x": x}, opsets=(18,), stream={"x": 1}, outputs="y z w")
    yield from cases(
        "Split_time", [node("Split", "x", "y z", axis=1)], {"x": x}, stream={"x": 1}, outputs="y z"
    )


def concat() -> Iterator[Case]:
    """Joins of streams and constants."""
    x = floats("concat", 2, 3, 4)
    yield from cases(
        "Concat", [node("Concat", "x z", axis=1)], {"x": x, "z": x[:, :1]}, stream={"x": 2, "z": 2}
    )
    constants = {"w": floats("w", 2, 3, 2)}
    yield from cases(
        "Concat_ends", [node("Concat", "w x w", axis=-1)], {"x": x}, constants, (11, 17), {"x": 2}
    )
    yield from cases("Concat_one", [node("Concat", "x", axis=0)], {"x": x}, stream={"x": 2})


def gather() -> Iterator[Case]:
    """Scalar and shaped indices, negative ones, data or indices that stream."""
    x = floats("gather", 4, 5, 6)
    for axis, indices in ((0, 2), (1, -1), (2, [0, 5, 3]), (0, [[1, -2], [3, 0]]), (-1, [-1])):
        made = node("Gather", "x i", axis=axis)
        constants = {"i": np.array(indices, dtype=np.int64)}
        yield from cases(
            f"Gather_{axis}_{indices}", [made], {"x": x}, constants, (7, 13), {"x": 1 if axis != 1 else 0}
        )
    ids = rng("ids").integers(0, 4, (2, 7))
    yield from cases("Gather_embedding", [node("Gather", "w x")], {"x": ids}, {"w": x}, stream={"x": 1})


def pad() -> Iterator[Case]:
    """Modes, both forms of the amounts, axes, negative amounts."""
    x = floats("pad", 2, 6, 5)
    amounts = [0, 2, 1, 0, 1, 3]
    for mode in ("constant", "edge", "reflect"):
        old = node("Pad", "x", pads=amounts, mode=mode)
        yield from cases(f"Pad_{mode}", [old], {"x": x}, opsets=(7, 10), stream={"x": 1})
        new = node("Pad", "x p", mode=mode)
        yield from cases(f"Pad_{mode}", [new], {"x": x}, {"p": _ints(*amounts)}, (11, 17), {"x": 1})
    yield from cases(
        "Pad_value", [node("Pad", "x", pads=amounts, value=1.5)], {"x": x}, opsets=(7,), stream={"x": 1}
    )
    filled = {"p": _ints(*amounts), "f": np.float32(-2)}
    yield from cases("Pad_fill", [node("Pad", "x p f")], {"x": x}, filled, (13,), {"x": 1})
    axes = {"p": _ints(1, 2, 0, 1), "a": _ints(-1, 1)}
    yield from cases("Pad_axes", [node("Pad", "x p _ a")], {"x": x}, axes, (18,), {"x": 1})
    negative = {"p": _ints(0, -2, 1, -1, 0, -3)}
    yield from cases("Pad_negative", [node("Pad", "x p")], {"x": x}, negative, stream={"x": 1})
    wrapped = {"p": _ints(0, 2, 1, 0, 1, 3)}
    yield from cases("Pad_wrap", [node("Pad", "x p", mode="wrap")], {"x": x}, wrapped, (19,), {"x": 0})
    some = {"p": _ints(2, 1), "a": _ints(1)}
    yield from cases("Pad_wrap_axis", [node("Pad", "x p _ a", mode="wrap")], {"x": x}, some, (19,), {"x": 1})
    cropped = {"p": _ints(0, 0, 0, 0, -2, 0)}
    yield from cases("Pad_crop", [node("Pad", "x p")], {"x": x}, cropped, stream={"x": 1})


def constants() -> Iterator[Case]:
    """Constants in every form, shapes as tensors, ranges."""
    x = floats("constants", 2, 6, 4)
    forms = {"value_float": 2.5, "value_floats": [1.0, 2.0, 3.0, 4.0]}
    for name, value in forms.items():
        made = [node("Constant", "", "c", **{name: value}), node("Add", "x c")]
        yield from cases(f"Constant_{name}", made, {"x": x}, opsets=(12, 17), stream={"x": 1})
    whole = {"value_int": 1, "value_ints": [2, 0, 1]}
    for name, value in whole.items():
        made = [node("Constant", "", "c", **{name: value}), node("Gather", "x c", axis=2)]
        yield from cases(f"Constant_{name}", made, {"x": x}, stream={"x": 1})
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


def chains() -> Iterator[Case]:
    """Shape arithmetic as exporters write it."""
    x = floats("chains", 2, 6, 4)
    numbers = {
        "one": np.int64(1),
        "zero": np.int64(0),
        "two": np.int64(2),
        "none": _ints(0),
        "open": _ints(-1),
    }
    length = [node("Shape", "x", "shape"), node("Gather", "shape one", "t")]
    merged = [
        *length,
        node("Mul", "t two", "tt"),
        node("Unsqueeze", "tt none", "u"),
        node("Concat", "open u two_list", "target", axis=0),
        node("Reshape", "x target"),
    ]
    yield from cases("chain_reshape", merged, {"x": x}, {**numbers, "two_list": _ints(2)}, stream={"x": 1})
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
    extra = {**numbers, "three": _ints(3), "w": floats("w", 1, 4)}
    yield from cases("chain_where_expand", picked, {"x": x}, extra, stream={"x": 1})
    half = [
        *length,
        node("Div", "t two", "h"),
        node("Unsqueeze", "h none", "e"),
        node("Slice", "x none e one_list", "y"),
    ]
    yield from cases("chain_half", half, {"x": x}, {**numbers, "one_list": _ints(1)}, stream={"x": 1})
    padded = [
        *length,
        node("Mod", "t two", "m"),
        node("Sub", "two m", "d"),
        node("Unsqueeze", "d none", "more"),
        node("Concat", "four more none", "pads", axis=0),
        node("Pad", "x pads"),
    ]
    yield from cases("chain_pad", padded, {"x": x}, {**numbers, "four": _ints(0, 0, 0, 0)}, stream={"x": 1})


ALL = (reshape, transpose, expand, slices, split, concat, gather, pad, constants, chains)
