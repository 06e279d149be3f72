"""Operators on the bits of integers."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, node, rng


def bits() -> Iterator[Case]:
    """Every operator on small unsigned integers."""
    x, z = (rng(name).integers(0, 200, (3, 5)).astype(np.uint8) for name in "xz")
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield from cases(op, [node(op, "x z")], {"x": x, "z": z}, None, (18,), {"x": 1, "z": 1})
    yield from cases("BitwiseNot", [node("BitwiseNot", "x")], {"x": x}, None, (18,), {"x": 1})
    for direction in ("LEFT", "RIGHT"):
        operator = node("BitShift", "x s", direction=direction)
        shift = {"s": np.array([0, 1, 2, 3, 7], np.uint8)}
        yield from cases(f"BitShift_{direction}", [operator], {"x": x}, shift, (11,), {"x": 0})


ALL = (bits,)
