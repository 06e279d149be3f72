"""Operators made of others: activations, arrangements, running products."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def activations() -> Iterator[Case]:
    """Infinities, shrinking, the largest entry, neighbouring channels."""
    x = floats("x", 2, 6, 5)
    wild = x.copy()
    wild[0, 0, 0], wild[1, 0, 0], wild[0, 1, 0] = np.inf, -np.inf, np.nan
    for positive, negative in ((1, 1), (1, 0), (0, 1), (0, 0)):
        made = node("IsInf", "x", detect_positive=positive, detect_negative=negative)
        yield from cases(f"IsInf_{positive}{negative}", [made], {"x": wild}, None, (10, 20), {"x": 2})
    made = node("Shrink", "x", lambd=0.7, bias=0.2)
    yield from cases("Shrink", [made], {"x": x}, None, (9,), {"x": 2})
    for axis in (1, -1):
        made = node("Hardmax", "x", axis=axis)
        yield from cases(f"Hardmax_{axis}", [made], {"x": np.round(x)}, None, (11, 13), {"x": 0})
    for size in (1, 3, 5):
        made = node("LRN", "x", size=size, alpha=0.3, beta=0.6, bias=1.5)
        yield from cases(f"LRN_{size}", [made], {"x": x[..., None]}, None, (13,), {"x": 2})
    made = node("SwiGLU", "x z", alpha=1.3)
    yield from cases("SwiGLU", [made], {"x": x, "z": floats("z", 2, 6, 5)}, None, (28,), {"x": 2, "z": 2})


def arrangements() -> Iterator[Case]:
    """Diagonals, cuts and pads to a size, reversed starts, constant selections."""
    x = floats("x", 4, 6, 5)
    for k in (-1, 0, 2):
        yield from cases(f"EyeLike_{k}", [node("EyeLike", "x", k=k)], {"x": x[0]}, None, (9,), {"x": 0})
    made = node("CenterCropPad", "x s", axes=[1, 2])
    yield from cases("CenterCropPad", [made], {"x": x}, {"s": np.array([3, 8])}, (18,), {"x": 0})
    for batch in (0, 1):
        made = node("ReverseSequence", "x n", batch_axis=batch, time_axis=1 - batch)
        lengths = np.array([1, 3, 4, 2, 4, 1])[: x.shape[batch]]
        yield from cases(f"ReverseSequence_{batch}", [made], {"x": x}, {"n": lengths}, (10,), {"x": 2})
    chosen = {"c": np.array([True, False, True, True])}
    yield from cases("Compress", [node("Compress", "x c", axis=0)], {"x": x}, chosen, (11,), {"x": 2})
    yield from cases("Compress_flat", [node("Compress", "x c")], {"x": x}, chosen, (11,))
    looked = [
        node("NonZero", "m", "where"),
        node("Transpose", "where", "places"),
        node("GatherND", "x places"),
    ]
    yield from cases("NonZero", looked, {"x": x}, {"m": np.array([0, 1, 1, 0])}, (13,), {"x": 1})


def running_products() -> Iterator[Case]:
    """Both directions, with and without the entry itself."""
    x = floats("x", 2, 5, 3)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            made = node("CumProd", "x a", exclusive=exclusive, reverse=reverse)
            name = f"CumProd_{exclusive}{reverse}"
            yield from cases(
                name, [made], {"x": x}, {"a": np.int64(1)}, (26,), {"x": 1 if not reverse else 0}
            )


ALL = (activations, arrangements, running_products)
