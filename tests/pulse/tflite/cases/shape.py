"""Reshapes, transposes and repetitions."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.tflite.cases.case import MOVED_TYPES, TfliteCase, i32, moved_case


def reshapes() -> Iterator[TfliteCase]:
    """The same elements in their order, in another shape."""
    for dtype in MOVED_TYPES:
        yield moved_case(dtype, "RESHAPE", (2, 3, 4), (6, 4), [i32(6, -1)], "ReshapeOptions", 1)
        yield moved_case(dtype, "RESHAPE", (2, 3, 4), (6, 4), [], "ReshapeOptions", 1, NewShape=[6, 4])
        axis = np.array(1, np.int32)
        yield moved_case(dtype, "EXPAND_DIMS", (2, 3), (2, 1, 3), [axis], "ExpandDimsOptions", 1)
        yield moved_case(dtype, "SQUEEZE", (2, 1, 3), (2, 3), [], "SqueezeOptions", 1, SqueezeDims=[1])


def other_orders() -> Iterator[TfliteCase]:
    """The elements in another order, or several times."""
    for dtype in MOVED_TYPES:
        yield moved_case(dtype, "TRANSPOSE", (2, 3, 4), (4, 2, 3), [i32(2, 0, 1)], "TransposeOptions")
    yield moved_case("float32", "TILE", (2, 3), (4, 3), [i32(2, 1)], "TileOptions")


ALL = (
    reshapes,
    other_orders,
)
