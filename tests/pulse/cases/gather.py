"""Gathers of entries by index."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node, rng


def gather() -> Iterator[Case]:
    """Scalar and shaped indices, negative ones, data or indices that stream."""
    x = floats("gather", 4, 5, 6)
    for axis, indices in ((0, 2), (1, -1), (2, [0, 5, 3]), (0, [[1, -2], [3, 0]]), (-1, [-1])):
        operator = node("Gather", "x i", axis=axis)
        constants = {"i": np.array(indices, dtype=np.int64)}
        yield from cases(
            f"Gather_{axis}_{indices}", [operator], {"x": x}, constants, (7, 13), {"x": 1 if axis != 1 else 0}
        )
    ids = rng("ids").integers(0, 4, (2, 7))
    yield from cases("Gather_embedding", [node("Gather", "w x")], {"x": ids}, {"w": x}, stream={"x": 1})


def gather_elements() -> Iterator[Case]:
    """Places that follow the axis, places for each element, indices from the end, computed ones."""
    x = floats("x", 3, 5, 7)
    for axis in (0, 1, -1):
        indices = rng(axis).integers(-3, 3, (2, 4, 6))
        operator = node("GatherElements", "x i", axis=axis)
        yield from cases(f"GatherElements_{axis}", [operator], {"x": x}, {"i": indices}, (11, 13))
    wide = [
        node("Shape", "x", "shape"),
        node("Expand", "i shape", "wide"),
        node("GatherElements", "x wide", axis=1),
    ]
    steady = {"i": np.array([4, 2, 2, -5, 1]).reshape(5, 1)}
    yield from cases("GatherElements_expanded", wide, {"x": x}, steady, (13,), {"x": 2})
    yield from cases("GatherElements_expanded_batch", wide, {"x": x}, steady, (13,), {"x": 0})
    operator = node("GatherElements", "x i", axis=1)
    computed = {"i": rng("table").integers(-5, 5, (3, 11, 7))}
    yield from cases("GatherElements_table", [operator], computed, {"x": x}, (13,), {"i": 1})
    both = {"x": x, "i": rng("c").integers(-5, 5, (3, 2, 7))}
    yield from cases("GatherElements_computed", [operator], both, None, (13,), {"x": 2, "i": 2})


def gather_nd() -> Iterator[Case]:
    """Rows, single entries, batches, indices from the end, computed ones."""
    x = floats("x", 3, 4, 5)
    operator = node("GatherND", "x i")
    for name, indices in {
        "rows": np.array([[2], [0], [0], [-1]]),
        "row": np.array([1]),
        "pairs": np.array([[[0, 1]], [[-1, -2]]]),
        "entries": np.array([[0, 1, 2], [2, 3, 4]]),
    }.items():
        stream = {"x": 2} if indices.shape[-1] < 3 else None
        yield from cases(f"GatherND_{name}", [operator], {"x": x}, {"i": indices}, (12, 13), stream)
        computed = {"x": x, "i": indices}
        yield from cases(f"GatherND_computed_{name}", [operator], computed, None, (13,), stream)
    batched = node("GatherND", "x i", batch_dims=1)
    places = np.array([[1], [0], [-1]])
    yield from cases("GatherND_batch", [batched], {"x": x}, {"i": places}, (13,), {"x": 2})
    streamed = {"i": rng("streamed").integers(-4, 4, (3, 9, 1))}
    yield from cases("GatherND_table", [batched], streamed, {"x": x}, (13,), {"i": 1})
    both = {"x": x, "i": places}
    yield from cases("GatherND_computed_batch", [batched], both, None, (13,), {"x": 0, "i": 0})


ALL = (gather, gather_elements, gather_nd)
