"""Pools, with random attributes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node, rng
from tests.pulse.cases.conv import lists


def pool() -> Iterator[Case]:
    """Random pools; ceil_mode and padding that is counted or not."""
    for seed in range(18):
        random = rng(("pool", seed))
        rank = 1 + seed % 2
        op = ("MaxPool", "AveragePool", "LpPool")[seed % 3]
        kernel = lists(random, rank, 2, 4)
        attributes: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": lists(random, rank, 1, 3),
            "pads": [int(random.integers(0, size)) for size in kernel * 2],
        }
        opsets = (7, 17)
        if op == "MaxPool" and seed % 4 < 2:
            attributes["dilations"] = lists(random, rank, 1, 2)
            opsets = (12, 17)
        if op != "LpPool" and seed % 4 > 1:
            attributes["ceil_mode"] = 1
            opsets = (12, 19)
        if op == "AveragePool":
            attributes["count_include_pad"] = seed // 3 % 2
        x = floats(seed, 2, 3, *lists(random, rank, 11, 16))
        yield from cases(
            f"{op}_{seed}", [node(op, "x", **attributes)], {"x": x}, opsets=opsets, stream={"x": 2}
        )
    for rule in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        for op in ("MaxPool", "AveragePool"):
            operator = node(op, "x", kernel_shape=[3], strides=[2], auto_pad=rule)
            for size in (10, 11):
                x = floats(size, 1, 2, size)
                yield from cases(f"{op}_{rule}_{size}", [operator], {"x": x}, stream={"x": 2})
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield from cases(op, [node(op, "x")], {"x": floats(op, 2, 3, 4, 5)}, stream={"x": 2})


def ceil_pool() -> Iterator[Case]:
    """Last windows that reach over the end; one that would begin in the padding is left out."""
    for op, extra in (("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})):
        for size in (6, 7, 8, 9):
            for stride in (1, 2, 3):
                for pads in ([0, 0], [1, 1], [0, 1]):
                    operator = node(
                        op, "x", kernel_shape=[2], strides=[stride], pads=pads, ceil_mode=1, **extra
                    )
                    name = f"{op}_ceil_{len(extra)}_{size}_{stride}_{pads}"
                    yield from cases(
                        name, [operator], {"x": floats(size, 1, 2, size)}, opsets=(19,), stream={"x": 2}
                    )


def pool_places() -> Iterator[Case]:
    """The indices of the largest entries, in both orders, with padding."""
    x = np.round(floats("places", 2, 3, 6, 7) * 2)
    for order in (0, 1):
        operator = node(
            "MaxPool",
            "x",
            "y places",
            kernel_shape=[2, 3],
            strides=[2, 1],
            pads=[1, 1, 0, 1],
            storage_order=order,
        )
        name = f"MaxPool_places_{order}"
        yield from cases(name, [operator], {"x": x}, None, (12,), {"x": 2}, outputs="y places")


ALL = (ceil_pool, pool, pool_places)
