"""Col2Im: overlapping blocks."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def col2im() -> Iterator[Case]:
    """One and two axes, strides, dilations, padding."""
    operator = node("Col2Im", "x i b", strides=[2])
    sizes = {"i": np.array([15]), "b": np.array([3])}
    yield from cases("Col2Im_1d", [operator], {"x": floats("x", 2, 6, 7)}, sizes, (18,))
    operator = node("Col2Im", "x i b", strides=[1, 2], dilations=[2, 1], pads=[1, 0, 1, 1])
    sizes = {"i": np.array([5, 6]), "b": np.array([2, 3])}
    yield from cases("Col2Im_2d", [operator], {"x": floats("x", 1, 12, 15)}, sizes, (18,))


def overlap_add() -> Iterator[Case]:
    """Frames of sound added where they overlap: hops that divide the frame, that do not, that leave gaps; cut ends."""
    for block, stride, pads, blocks in ((8, 2, 0, 7), (8, 3, 0, 6), (3, 5, 0, 4), (8, 2, 3, 9)):
        length = (blocks - 1) * stride + block - 2 * pads
        nodes = [
            node("Shape", "x", "l", start=2, end=3),
            node("Mul", "l hop", "m"),
            node("Add", "m rest", "n"),
            node("Concat", "one n", "i", axis=0),
            node("Col2Im", "x i b", strides=[1, stride], pads=[0, pads, 0, pads]),
        ]
        constants = {
            "hop": np.array([stride]),
            "rest": np.array([length - blocks * stride]),
            "one": np.array([1]),
            "b": np.array([1, block]),
        }
        x = {"x": floats("overlap", 1, 2 * block, blocks)}
        yield from cases(f"Col2Im_frames_{block}_{stride}_{pads}", nodes, x, constants, (18,), {"x": 2})


ALL = (col2im, overlap_add)
