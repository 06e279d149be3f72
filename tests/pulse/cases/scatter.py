"""Scatters of entries to many places."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, ints, node, rng


def scatter_nd() -> Iterator[Case]:
    """Slice assignments, strides, single places, indices from the end, reductions with repeats, computed indices."""
    x = floats("x", 4, 6, 5)
    boxes = {
        "rows": np.array([[1], [2]]),
        "last_row": np.array([[-1]]),
        "all_rows": np.arange(4)[:, None],
        "box": np.stack(np.meshgrid([1, 2], [2, 3, 4], indexing="ij"), -1),
        "column": np.stack(np.meshgrid(range(4), [5], indexing="ij"), -1),
        "element": np.array([2, 3, 4]),
    }
    odd = {
        "strided": np.arange(0, 4, 2)[:, None],
        "turned": np.array([[2], [0], [1]]),
        "repeated": np.array([[2], [0], [2]]),
        "pairs": np.array([[0, 1], [3, 5], [2, -1]]),
        "nothing": np.zeros((0, 1), np.int64),
    }
    for name, indices in (boxes | odd).items():
        updates = floats(name, *indices.shape[:-1], *x.shape[indices.shape[-1] :])
        operator = node("ScatterND", "x i u")
        stream = {"x": 2, "u": updates.ndim - 1} if indices.shape[-1] < 3 else None
        feeds = {"x": x, "u": updates}
        yield from cases(f"ScatterND_{name}", [operator], feeds, {"i": indices}, (11, 18), stream)
    for reduction in ("add", "mul", "max", "min"):
        for name in ("rows", "repeated"):
            indices = (boxes | odd)[name]
            feeds = {"x": x, "u": floats(name, len(indices), 6, 5)}
            operator = node("ScatterND", "x i u", reduction=reduction)
            yield from cases(
                f"ScatterND_{reduction}_{name}", [operator], feeds, {"i": indices}, (18,), {"x": 1, "u": 1}
            )
    feeds = {"x": x, "i": np.array([[2], [0]]), "u": floats("u", 2, 6, 5)}
    yield from cases("ScatterND_computed", [node("ScatterND", "x i u")], feeds, None, (16,), {"x": 2, "u": 2})
    feeds = {"x": x[0], "u": floats("u", 2, 5)}
    operator = node("ScatterND", "x i u")
    yield from cases("ScatterND_time", [operator], feeds, {"i": np.array([[0], [1]])}, (16,), {"x": 0})


def scatter_elements() -> Iterator[Case]:
    """Both axes, places that follow the axis, repeats with reductions, computed indices."""
    x = floats("x", 4, 6)
    indices = rng("i").integers(-4, 4, (4, 3))
    feeds = {"x": x, "u": floats("u", 4, 3)}
    for op, opsets in (("ScatterElements", (11, 18)), ("Scatter", (9,))):
        places = np.array([[0, 2, 1], [-1, 3, 2], [1, 0, 3], [2, 1, 0]])
        yield from cases(op, [node(op, "x i u", axis=1)], feeds, {"i": places}, opsets)
    steady = np.repeat(np.array([[3], [1]]), 6, 1)
    operator = node("ScatterElements", "x i u", axis=0)
    both = {"x": x, "u": floats("u", 2, 6)}
    yield from cases("ScatterElements_rows", [operator], both, {"i": steady}, (18,))
    expanded = [
        node("Shape", "u", "shape"),
        node("Expand", "i shape", "wide"),
        node("ScatterElements", "x wide u", axis=0),
    ]
    yield from cases(
        "ScatterElements_expanded", expanded, both, {"i": steady[:, :1]}, (18,), {"x": 1, "u": 1}
    )
    for reduction in ("add", "mul", "max", "min"):
        operator = node("ScatterElements", "x i u", axis=1, reduction=reduction)
        yield from cases(f"ScatterElements_{reduction}", [operator], feeds, {"i": indices}, (18,))
    operator = node("ScatterElements", "x i u", axis=1)
    computed = {**feeds, "i": np.array([[0, 2, 1]] * 4)}
    yield from cases("ScatterElements_computed", [operator], computed, None, (16,), {"x": 0, "i": 0, "u": 0})


def frames_laid() -> Iterator[Case]:
    """Frames added where they overlap, at places looked up in a range, as in an inverse transform."""
    x = floats("frames laid", 5, 6)
    nodes = [
        node("Shape", "x", "l", start=0, end=1),
        node("Squeeze", "l", "n"),
        node("Mul", "n hop", "after"),
        node("Add", "after rest", "size"),
        node("Range", "zero size one", "count"),
        node("Range", "zero after hop", "firsts"),
        node("Unsqueeze", "firsts open", "column"),
        node("Add", "column taps", "grid"),
        node("Gather", "count grid", "places"),
        node("Reshape", "places open", "line"),
        node("Unsqueeze", "line open", "index"),
        node("Unsqueeze", "size front", "length"),
        node("ConstantOfShape", "length", "silence"),
        node("Reshape", "x open", "updates"),
        node("ScatterND", "silence index updates", reduction="add"),
    ]
    constants = {
        "zero": np.int64(0),
        "one": np.int64(1),
        "open": ints(-1),
        "front": ints(0),
        "hop": np.int64(2),
    }
    for first in (0, 3):
        taps = {"taps": np.arange(first, first + 6)[None], "rest": np.int64(4 + first)}
        yield from cases(f"ScatterND_frames_{first}", nodes, {"x": x}, {**constants, **taps}, (18,), {"x": 0})


ALL = (frames_laid, scatter_nd, scatter_elements)
