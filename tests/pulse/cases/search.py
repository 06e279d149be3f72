"""Searches, and tensors made from indices."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node, rng


def top_k() -> Iterator[Case]:
    """Both orders, every axis, equal entries, all and none of them."""
    x = np.round(floats("top", 3, 7, 5) * 2)
    for axis in (0, 1, -1):
        for largest in (0, 1):
            for count in (1, 3):
                operator = node("TopK", "x k", "y z", axis=axis, largest=largest)
                constants = {"k": np.array([count])}
                stream = {"x": 1 if axis != 1 else 2}
                name = f"TopK_{axis}_{largest}_{count}"
                yield from cases(name, [operator], {"x": x}, constants, (11, 13), stream, "y z")
    whole = node("TopK", "x k", "y z", axis=1)
    yield from cases("TopK_all", [whole], {"x": x}, {"k": np.array([7])}, (10,), {"x": 2}, "y z")
    yield from cases("TopK_none", [whole], {"x": x}, {"k": np.array([0])}, (11,), {"x": 2}, "y z")
    yield from cases("TopK_indices", [whole], {"x": x}, {"k": np.array([2])}, (11,), {"x": 2}, "z")
    yield from cases("TopK_time", [whole], {"x": x}, {"k": np.array([2])}, (11,), {"x": 1}, "y z")
    old = node("TopK", "x", "y z", axis=1, k=2)
    yield from cases("TopK_old", [old], {"x": x}, None, (9,), {"x": 2}, "y z")
    integers = rng("top").integers(-9, 9, (3, 7, 5))
    yield from cases("TopK_i64", [whole], {"x": integers}, {"k": np.array([2])}, (11,), {"x": 2}, "y z")


def one_hot() -> Iterator[Case]:
    """Axes, indices from the end and out of range, types."""
    x = np.array([[0, 2, -1, 5], [3, -4, -5, 1]])
    for axis in (-1, 0, 1):
        operator = node("OneHot", "x depth values", axis=axis)
        constants = {"depth": np.int64(4), "values": np.array([-1, 2], np.float32)}
        yield from cases(f"OneHot_{axis}", [operator], {"x": x}, constants, (9, 11), {"x": 1})
    as_float = {"depth": np.array([4], np.float32), "values": np.array([0, 1], np.float32)}
    operator = node("OneHot", "x depth values")
    yield from cases("OneHot_f32", [operator], {"x": x.astype(np.float32)}, as_float, (11,), {"x": 1})


def trilu() -> Iterator[Case]:
    """Both halves, moved diagonals, of constants and of streams."""
    x = floats("trilu", 3, 4, 5)
    for upper in (0, 1):
        yield from cases(f"Trilu_{upper}", [node("Trilu", "x", upper=upper)], {"x": x}, None, (14,), {"x": 0})
        for k in (-2, 1, 9):
            operator = node("Trilu", "x k", upper=upper)
            constants = {"k": np.int64(k)}
            yield from cases(f"Trilu_{upper}_{k}", [operator], {"x": x}, constants, (14,), {"x": 0})
    masked = [node("Trilu", "w", "m", upper=0), node("Add", "x m")]
    yield from cases("Trilu_constant", masked, {"x": x}, {"w": floats("w", 4, 5)}, (14,), {"x": 0})
    yield from cases("Trilu_time", [node("Trilu", "x")], {"x": x}, None, (14,), {"x": 1})


def hardmax() -> Iterator[Case]:
    """The largest entry of an axis."""
    x = floats("x", 2, 6, 5)
    for axis in (1, -1):
        operator = node("Hardmax", "x", axis=axis)
        yield from cases(f"Hardmax_{axis}", [operator], {"x": np.round(x)}, None, (11, 13), {"x": 0})


def selections() -> Iterator[Case]:
    """Compress by constant conditions."""
    x = floats("x", 4, 6, 5)
    chosen = {"c": np.array([True, False, True, True])}
    yield from cases("Compress", [node("Compress", "x c", axis=0)], {"x": x}, chosen, (11,), {"x": 2})
    yield from cases("Compress_flat", [node("Compress", "x c")], {"x": x}, chosen, (11,))
    looked = [
        node("NonZero", "m", "where"),
        node("Transpose", "where", "places"),
        node("GatherND", "x places"),
    ]
    yield from cases("NonZero", looked, {"x": x}, {"m": np.array([0, 1, 1, 0])}, (13,), {"x": 1})


ALL = (top_k, one_hot, trilu, hardmax, selections)
