"""Convolutions, with random attributes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node, rng


def lists(random: np.random.Generator, rank: int, low: int, high: int) -> list[int]:
    return [int(random.integers(low, high + 1)) for _ in range(rank)]


def conv() -> Iterator[Case]:
    """Random kernels, strides, dilations, pads and groups."""
    for seed in range(12):
        random = rng(("conv", seed))
        rank = 1 + seed % 2
        group = (1, 2, 4)[seed % 3]
        kernel = lists(random, rank, 1, 4)
        x = floats(seed, 2, 4, *lists(random, rank, 14, 19))
        w = floats(seed + 100, 8, 4 // group, *kernel)
        attributes: dict[str, Any] = {
            "strides": lists(random, rank, 1, 3),
            "dilations": lists(random, rank, 1, 3),
            "pads": lists(random, 2 * rank, 0, 3),
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
        kernel, strides = lists(random, rank, 2, 4), lists(random, rank, 1, 3)
        attributes: dict[str, Any] = {
            "strides": strides,
            "dilations": lists(random, rank, 1, 2),
            "pads": lists(random, 2 * rank, 0, 1),
            "output_padding": [int(random.integers(0, stride)) for stride in strides],
            "group": group,
        }
        x = floats(seed, 2, 4, *lists(random, rank, 5, 9))
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
            operator = node("ConvTranspose", "x w", auto_pad=rule, strides=[stride])
            yield from cases(
                f"ConvTranspose_{rule}_{stride}", [operator], {"x": x}, constants, stream={"x": 2}
            )
    for length in (11, 12, 13):
        operator = node("ConvTranspose", "x w", output_shape=[length], strides=[2])
        yield from cases(f"ConvTranspose_output_{length}", [operator], {"x": x}, constants)


def conv_transpose_in_groups() -> Iterator[Case]:
    """One stride: outputs that are neighbours, with a rest and without; and every channel by itself."""
    x = floats("x", 1, 4, 7, 6)
    for strides, pads, group in (
        ([1, 2], [0, 2, 0, 2], 1),
        ([1, 3], [1, 0, 1, 1], 1),
        ([2, 1], [0, 1, 0, 1], 1),
        ([2, 3], [0, 0, 0, 0], 1),
        ([1, 1], [0, 1, 0, 1], 4),
        ([1, 2], [0, 1, 0, 0], 4),
    ):
        operator = node("ConvTranspose", "x w b", "t", strides=strides, pads=pads, group=group)
        constants = {"w": floats("w", 4, 4 // group, 2, 5), "b": floats("b", 4), "s": floats("s", 4, 1, 1)}
        yield from cases(
            f"ConvTranspose_{'x'.join(map(str, strides))}_{group}",
            [operator, node("PRelu", "t s", "p"), node("Tanh", "p")],
            {"x": x},
            constants,
            (9, 17),
            {"x": 2},
        )


ALL = (conv, conv_auto_pad, conv_transpose, conv_transpose_in_groups)
