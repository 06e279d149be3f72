"""Blocks laid over each other."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def col2im() -> Iterator[Case]:
    """One and two axes, strides, dilations, padding."""
    made = node("Col2Im", "x i b", strides=[2])
    sizes = {"i": np.array([15]), "b": np.array([3])}
    yield from cases("Col2Im_1d", [made], {"x": floats("x", 2, 6, 7)}, sizes, (18,))
    made = node("Col2Im", "x i b", strides=[1, 2], dilations=[2, 1], pads=[1, 0, 1, 1])
    sizes = {"i": np.array([5, 6]), "b": np.array([2, 3])}
    yield from cases("Col2Im_2d", [made], {"x": floats("x", 1, 12, 15)}, sizes, (18,))


ALL = (col2im,)
