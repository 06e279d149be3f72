"""Resizing by scales and by sizes."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node

COORDINATES = ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners")

ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")

SCALES = (2.0, 3.0, 0.5, 1.5, 2 / 3, 0.4, 0.75, 1.7)


def _scales(*scales: float) -> dict[str, np.ndarray]:
    return {"s": np.array(scales, np.float32), "r": np.zeros(0, np.float32)}


def nearest() -> Iterator[Case]:
    """Every coordinate and rounding rule."""
    x = floats("nearest", 1, 3, 12)
    for scale in SCALES:
        for coordinates in (*COORDINATES, "tf_half_pixel_for_nn"):
            for rounding in ROUNDINGS:
                operator = node(
                    "Resize",
                    "x r s",
                    coordinate_transformation_mode=coordinates,
                    nearest_mode=rounding,
                )
                opset = 11 if coordinates == "tf_half_pixel_for_nn" else 13
                name = f"Resize_nearest_{coordinates}_{rounding}_{scale:.2f}"
                yield from cases(name, [operator], {"x": x}, _scales(1, 1, scale), (opset,), {"x": 2})
        symmetric = node("Resize", "x r s", coordinate_transformation_mode="half_pixel_symmetric")
        name = f"Resize_nearest_symmetric_{scale:.2f}"
        yield from cases(name, [symmetric], {"x": x}, _scales(1, 1, scale), (19,), {"x": 2})


def linear() -> Iterator[Case]:
    """Every coordinate rule, over one axis and over two."""
    x = floats("linear", 1, 3, 12)
    for scale in SCALES:
        for coordinates in (*COORDINATES, "half_pixel_symmetric"):
            operator = node("Resize", "x r s", mode="linear", coordinate_transformation_mode=coordinates)
            opset = 19 if coordinates == "half_pixel_symmetric" else 13
            name = f"Resize_linear_{coordinates}_{scale:.2f}"
            yield from cases(name, [operator], {"x": x}, _scales(1, 1, scale), (opset,), {"x": 2})
    image = floats("image", 2, 3, 6, 5)
    both = node("Resize", "x r s", mode="linear")
    yield from cases("Resize_linear_two", [both], {"x": image}, _scales(1, 1, 2, 1.5), (11, 18), {"x": 2})
    yield from cases("Resize_linear_wide", [both], {"x": image}, _scales(1, 1, 1.5, 2), (11,), {"x": 3})


def cubic() -> Iterator[Case]:
    """Every coordinate rule over the last axis of an image; another coefficient, frames that do not count."""
    x = floats("cubic", 1, 2, 3, 12)
    for scale in SCALES:
        for coordinates in COORDINATES:
            operator = node("Resize", "x r s", mode="cubic", coordinate_transformation_mode=coordinates)
            name = f"Resize_cubic_{coordinates}_{scale:.2f}"
            yield from cases(name, [operator], {"x": x}, _scales(1, 1, 1, scale), (13,), {"x": 3})
    for name, attributes in (("a", {"cubic_coeff_a": -0.5}), ("excluded", {"exclude_outside": 1})):
        operator = node("Resize", "x r s", mode="cubic", **attributes)
        both = _scales(1, 1, 2, 0.75)
        yield from cases(f"Resize_cubic_{name}", [operator], {"x": x}, both, (13, 18), {"x": 1})


def crops() -> Iterator[Case]:
    """A part of two axes, and what lies beyond the ends; one factor for two axes."""
    x = floats("cropped", 1, 2, 6, 8)
    region = {"r": np.array([0, 0, 0.25, -0.2, 1, 1, 0.75, 1.1], np.float32)}
    for mode in ("nearest", "linear"):
        operator = node(
            "Resize",
            "x r s",
            mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=7.0,
        )
        yield from cases(
            f"Resize_{mode}_crop", [operator], {"x": x}, {**_scales(1, 1, 0.5, 2), **region}, (13,), {"x": 0}
        )
    for policy in ("not_larger", "not_smaller"):
        operator = node("Resize", "x _ _ s", axes=[2, 3], keep_aspect_ratio_policy=policy, mode="linear")
        yield from cases(f"Resize_{policy}", [operator], {"x": x}, {"s": np.array([9, 20])}, (18,), {"x": 0})


def sizes() -> Iterator[Case]:
    """Constant sizes, sizes of some axes, sizes that are a multiple of the length, a length of one."""
    x = floats("sizes", 1, 3, 12)
    for size in (24, 18, 7, 5, 12):
        for mode in ("nearest", "linear"):
            operator = node("Resize", "x r r s", mode=mode)
            constants = {**_scales(), "s": np.array([1, 3, size])}
            yield from cases(f"Resize_{mode}_to_{size}", [operator], {"x": x}, constants, (11, 13), {"x": 2})
    some = node("Resize", "x _ _ s", axes=[-1])
    yield from cases("Resize_axes", [some], {"x": x}, {"s": np.array([30])}, (18, 19), {"x": 2})
    doubled = [
        node("Shape", "x", "shape"),
        node("Slice", "shape zero two", "kept"),
        node("Slice", "shape two three", "t"),
        node("Mul", "t two", "tt"),
        node("Concat", "kept tt", "size", axis=0),
        node("Resize", "x _ _ size", mode="linear"),
    ]
    numbers = {"zero": np.array([0]), "two": np.array([2]), "three": np.array([3])}
    yield from cases("Resize_doubled", doubled, {"x": x}, numbers, (13, 18), {"x": 2})
    nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    skip = [
        node("MaxPool", "x", "half", kernel_shape=[2], strides=[2], pads=[0, 1]),
        node("Shape", "x", "size"),
        node("Resize", "half _ _ size", **nearest),
    ]
    yield from cases("Resize_to_a_skip", skip, {"x": x}, None, (13, 18), {"x": 2})
    single = [
        node("Shape", "z", "size"),
        node("Resize", "x _ _ size"),
        node("Add", "r z"),
    ]
    single[1].output[0] = "r"
    yield from cases("Resize_single", single, {"x": x[..., :1], "z": x}, {}, (13,), {"z": 2})


def old() -> Iterator[Case]:
    """Resize-10 and Upsample, which have no modes of coordinates."""
    x = floats("old", 1, 3, 10)
    for scale in (2.0, 3.0, 1.5):
        for mode in ("nearest", "linear"):
            for op, opset in (("Upsample", 9), ("Resize", 10)):
                operator = node(op, "x s", mode=mode)
                name = f"{op}_{mode}_{scale}"
                yield from cases(name, [operator], {"x": x}, _scales(1, 1, scale), (opset,), {"x": 2})
            seven = node("Upsample", "x", mode=mode, scales=[1.0, 1.0, scale])
            yield from cases(f"Upsample_{mode}_{scale}", [seven], {"x": x}, opsets=(7,), stream={"x": 2})
    for scale in (0.5, 0.4):
        name = f"Resize_down_{scale}"
        yield from cases(name, [node("Resize", "x s")], {"x": x}, _scales(1, 1, scale), (10,), {"x": 2})


ALL = (nearest, linear, cubic, crops, sizes, old)
