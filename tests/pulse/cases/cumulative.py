"""Running sums and products."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def cumsum() -> Iterator[Case]:
    """Every axis, both ways, with and without the frame itself; several types."""
    x = floats("cumsum", 3, 5, 4)
    for axis in (0, 1, -1):
        for exclusive in (0, 1):
            for reverse in (0, 1):
                operator = node("CumSum", "x a", exclusive=exclusive, reverse=reverse)
                constants = {"a": np.array(axis, np.int64)}
                name = f"CumSum_{axis}_{exclusive}_{reverse}"
                yield from cases(name, [operator], {"x": x}, constants, (11, 14), {"x": 1})
    for dtype in (np.int32, np.int64, np.float64):
        constants = {"a": np.array([1], np.int32)}
        yield from cases(
            f"CumSum_{np.dtype(dtype).name}", [node("CumSum", "x a")], {"x": (x * 9).astype(dtype)}, constants
        )


def running_products() -> Iterator[Case]:
    """Both directions, with and without the entry itself."""
    x = floats("x", 2, 5, 3)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            operator = node("CumProd", "x a", exclusive=exclusive, reverse=reverse)
            name = f"CumProd_{exclusive}{reverse}"
            yield from cases(
                name, [operator], {"x": x}, {"a": np.int64(1)}, (26,), {"x": 1 if not reverse else 0}
            )


ALL = (cumsum, running_products)
