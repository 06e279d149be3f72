"""Convolutions and pools, with random attributes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node, rng


def _lists(random: np.random.Generator, rank: int, low: int, high: int) -> list[int]:
    return [int(random.integers(low, high + 1)) for _ in range(rank)]


def conv() -> Iterator[Case]:
    """Random kernels, strides, dilations, pads and groups."""
    for seed in range(12):
        random = rng(("conv", seed))
        rank = 1 + seed % 2
        group = (1, 2, 4)[seed % 3]
        kernel = _lists(random, rank, 1, 4)
        x = floats(seed, 2, 4, *_lists(random, rank, 14, 19))
        w = floats(seed + 100, 8, 4 // group, *kernel)
        attributes: dict[str, Any] = {
            "strides": _lists(random, rank, 1, 3),
            "dilations": _lists(random, rank, 1, 3),
            "pads": _lists(random, 2 * rank, 0, 3),
            "group": group,
        }
        inputs = "x w b" if seed % 2 else "x w"
        constants = {"w": w, "b": floats(seed, 8)} if seed % 2 else {"w": w}
        yield from cases(
            f"Conv_{seed}", [node("Conv", inputs, **attributes)], {"x": x}, constants, (7, 17), {"x": 2}
        )


def conv_auto_pad() -> Iterator[Case]:
    """Padding by rule, over lengths that do and do not divide by the stride."""
    for rule in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        for size, kernel, stride in ((12, 3, 1), (13, 4, 2), (14, 4, 3), (9, 2, 3), (7, 1, 2)):
            attributes = {"auto_pad": rule, "strides": [stride]}
            yield from cases(
                f"Conv_{rule}_{size}_{kernel}_{stride}",
                [node("Conv", "x w", kernel_shape=[kernel], **attributes)],
                {"x": floats(size, 1, 2, size)},
                {"w": floats(kernel, 3, 2, kernel)},
                stream={"x": 2},
            )


def conv_transpose() -> Iterator[Case]:
    """Random attributes, sizes given by padding, by rule, or as such."""
    for seed in range(12):
        random = rng(("deconv", seed))
        rank, group = 1 + seed % 2, 1 + seed // 2 % 2
        kernel, strides = _lists(random, rank, 2, 4), _lists(random, rank, 1, 3)
        attributes: dict[str, Any] = {
            "strides": strides,
            "dilations": _lists(random, rank, 1, 2),
            "pads": _lists(random, 2 * rank, 0, 1),
            "output_padding": [int(random.integers(0, stride)) for stride in strides],
            "group": group,
        }
        x = floats(seed, 2, 4, *_lists(random, rank, 5, 9))
        constants = {"w": floats(seed, 4, 6 // group, *kernel), "b": floats(seed, 6)}
        yield from cases(
            f"ConvTranspose_{seed}",
            [node("ConvTranspose", "x w b", **attributes)],
            {"x": x},
            constants,
            (7, 17),
            {"x": 2},
        )
    x, constants = floats("x", 1, 2, 6), {"w": floats("w", 2, 3, 5)}
    for rule in ("SAME_UPPER", "SAME_LOWER"):
        for stride in (1, 2, 3):
            made = node("ConvTranspose", "x w", auto_pad=rule, strides=[stride])
            yield from cases(f"ConvTranspose_{rule}_{stride}", [made], {"x": x}, constants, stream={"x": 2})
    for length in (11, 12, 13):
        made = node("ConvTranspose", "x w", output_shape=[length], strides=[2])
        yield from cases(f"ConvTranspose_output_{length}", [made], {"x": x}, constants)


def pool() -> Iterator[Case]:
    """Random pools; ceil_mode and padding that is counted or not."""
    for seed in range(18):
        random = rng(("pool", seed))
        rank = 1 + seed % 2
        op = ("MaxPool", "AveragePool", "LpPool")[seed % 3]
        kernel = _lists(random, rank, 2, 4)
        attributes: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": _lists(random, rank, 1, 3),
            "pads": [int(random.integers(0, size)) for size in kernel * 2],
        }
        opsets = (7, 17)
        if op == "MaxPool" and seed % 4 < 2:
            attributes["dilations"] = _lists(random, rank, 1, 2)
            opsets = (12, 17)
        if op != "LpPool" and seed % 4 > 1:
            attributes["ceil_mode"] = 1
            opsets = (12, 19)
        if op == "AveragePool":
            attributes["count_include_pad"] = seed // 3 % 2
        x = floats(seed, 2, 3, *_lists(random, rank, 11, 16))
        yield from cases(
            f"{op}_{seed}", [node(op, "x", **attributes)], {"x": x}, opsets=opsets, stream={"x": 2}
        )
    for rule in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        for op in ("MaxPool", "AveragePool"):
            made = node(op, "x", kernel_shape=[3], strides=[2], auto_pad=rule)
            for size in (10, 11):
                x = floats(size, 1, 2, size)
                yield from cases(f"{op}_{rule}_{size}", [made], {"x": x}, stream={"x": 2})
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield from cases(op, [node(op, "x")], {"x": floats(op, 2, 3, 4, 5)}, stream={"x": 2})


def ceil_pool() -> Iterator[Case]:
    """Last windows that reach over the end; one that would begin in the padding is left out."""
    for op, extra in (("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})):
        for size in (6, 7, 8, 9):
            for stride in (1, 2, 3):
                for pads in ([0, 0], [1, 1], [0, 1]):
                    made = node(op, "x", kernel_shape=[2], strides=[stride], pads=pads, ceil_mode=1, **extra)
                    name = f"{op}_ceil_{len(extra)}_{size}_{stride}_{pads}"
                    yield from cases(
                        name, [made], {"x": floats(size, 1, 2, size)}, opsets=(19,), stream={"x": 2}
                    )


def pool_places() -> Iterator[Case]:
    """Where the largest entries are, in both orders, with padding."""
    x = np.round(floats("places", 2, 3, 6, 7) * 2)
    for order in (0, 1):
        made = node(
            "MaxPool",
            "x",
            "y places",
            kernel_shape=[2, 3],
            strides=[2, 1],
            pads=[1, 1, 0, 1],
            storage_order=order,
        )
        name = f"MaxPool_places_{order}"
        yield from cases(name, [made], {"x": x}, None, (12,), {"x": 2}, outputs="y places")


ALL = (ceil_pool, conv, conv_auto_pad, conv_transpose, pool, pool_places)
