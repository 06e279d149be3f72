"""Frames that are written into a cache."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def tensor_scatter() -> Iterator[Case]:
    """Writes at the start, at an index, at an index per batch, and wrapped around the end."""
    cache, update = floats("cache", 2, 3, 6, 4), floats("update", 2, 3, 2, 4)
    feeds = {"x": cache, "u": update}
    yield from cases("TensorScatter", [node("TensorScatter", "x u")], feeds, None, (24,), {"x": 3, "u": 3})
    for mode in ("linear", "circular"):
        operator = node("TensorScatter", "x u i", mode=mode)
        for name, index in (("same", [3, 3]), ("own", [1, 4]), ("round", [5, 2])):
            if mode == "linear" and name == "round":
                continue
            places = {"i": np.array(index)}
            yield from cases(
                f"TensorScatter_{mode}_{name}", [operator], feeds, places, (24,), {"x": 3, "u": 3}
            )
            yield from cases(
                f"TensorScatter_{mode}_{name}_data", [operator], feeds | places, None, (24,), {"x": 3, "u": 3}
            )


ALL = (tensor_scatter,)
