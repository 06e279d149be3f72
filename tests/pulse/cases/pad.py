"""Padding."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, ints, node


def pad() -> Iterator[Case]:
    """Modes, both forms of the amounts, axes, negative amounts."""
    x = floats("pad", 2, 6, 5)
    amounts = [0, 2, 1, 0, 1, 3]
    for mode in ("constant", "edge", "reflect"):
        old = node("Pad", "x", pads=amounts, mode=mode)
        yield from cases(f"Pad_{mode}", [old], {"x": x}, opsets=(7, 10), stream={"x": 1})
        new = node("Pad", "x p", mode=mode)
        yield from cases(f"Pad_{mode}", [new], {"x": x}, {"p": ints(*amounts)}, (11, 17), {"x": 1})
    yield from cases(
        "Pad_value", [node("Pad", "x", pads=amounts, value=1.5)], {"x": x}, opsets=(7,), stream={"x": 1}
    )
    filled = {"p": ints(*amounts), "f": np.float32(-2)}
    yield from cases("Pad_fill", [node("Pad", "x p f")], {"x": x}, filled, (13,), {"x": 1})
    axes = {"p": ints(1, 2, 0, 1), "a": ints(-1, 1)}
    yield from cases("Pad_axes", [node("Pad", "x p _ a")], {"x": x}, axes, (18,), {"x": 1})
    negative = {"p": ints(0, -2, 1, -1, 0, -3)}
    yield from cases("Pad_negative", [node("Pad", "x p")], {"x": x}, negative, stream={"x": 1})
    wrapped = {"p": ints(0, 2, 1, 0, 1, 3)}
    yield from cases("Pad_wrap", [node("Pad", "x p", mode="wrap")], {"x": x}, wrapped, (19,), {"x": 0})
    some = {"p": ints(2, 1), "a": ints(1)}
    yield from cases("Pad_wrap_axis", [node("Pad", "x p _ a", mode="wrap")], {"x": x}, some, (19,), {"x": 1})
    cropped = {"p": ints(0, 0, 0, 0, -2, 0)}
    yield from cases("Pad_crop", [node("Pad", "x p")], {"x": x}, cropped, stream={"x": 1})


def center_crop_pad() -> Iterator[Case]:
    """CenterCropPad to a constant size."""
    x = floats("x", 4, 6, 5)
    operator = node("CenterCropPad", "x s", axes=[1, 2])
    yield from cases("CenterCropPad", [operator], {"x": x}, {"s": np.array([3, 8])}, (18,), {"x": 0})


ALL = (pad, center_crop_pad)
