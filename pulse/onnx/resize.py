"""Resizing, and the shuffles between channels and positions."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Elementwise
from pulse.ops.gather import Gather
from pulse.ops.resize import ROUNDING, Coordinates, Interpolate, Rounding, Sampling
from pulse.ops.shape import Expand, Reshape, Transpose, exact_quotient, with_dim

COORDINATES: dict[str, Coordinates] = {
    "asymmetric": "asymmetric",
    "half_pixel": "half_pixel",
    "pytorch_half_pixel": "pytorch_half_pixel",
    "half_pixel_symmetric": "half_pixel_symmetric",
    "tf_half_pixel_for_nn": "tf_half_pixel_for_nn",
    "align_corners": "align_corners",
}
ROUNDINGS: dict[str, Rounding] = {name: name for name in ROUNDING}

Plan = dict[int, tuple[TDim, Fraction | None]]
"""For each axis that changes its new length, and the factor where that is constant."""


@onnx_op("Resize", "Upsample")
def resize(node: NodeContext) -> OutletId:
    """One axis after another; lookups where the length is constant."""
    plan = _plan(node)
    x = node.input(0)
    for axis, (length, ratio) in plan.items():
        name = node if axis == list(plan)[-1] else node.named(f"{node.wire_name}.axis{axis}")
        x = _resized(name, x, axis, length, ratio, _sampling(node, ratio))
    return x


def _plan(node: NodeContext) -> Plan:
    shape = node.fact(0).shape
    old = node.opset < 11
    if node.op_type == "Upsample" and node.opset < 9:
        scales = list(node.real_list("scales"))
    else:
        slot = 1 if old else 2
        given = node.has(slot) and node.fact(slot).shape != (TDim.of(0),)
        scales = [float(scale) for scale in node.numbers(slot, "scales").ravel()] if given else []
    sizes: Sequence[TDim] = node.dims(3, "sizes") if not scales and node.has(3) else ()
    axes = node.integer_list("axes", range(len(shape)))
    axes = [node.axis(axis, len(shape)) for axis in axes]
    if len(scales or sizes) != len(axes):
        raise node.error(
            f"{len(scales)} scales and {len(sizes)} sizes for {len(axes)} axes; give one of the two"
        )
    _require_covered(node)
    plan: Plan = {}
    for place, axis in enumerate(axes):
        if scales:
            ratio = _ratio(scales[place])
            if ratio <= 0:
                raise node.error(f"scale {scales[place]} is not positive")
            if ratio != 1:
                plan[axis] = shape[axis] * ratio.numerator // ratio.denominator, ratio
        elif sizes[place] != shape[axis]:
            plan[axis] = sizes[place], _quotient(sizes[place], shape[axis])
    return plan


def _require_covered(node: NodeContext) -> None:
    if node.flag("antialias") or node.flag("exclude_outside"):
        raise node.error("antialias and exclude_outside are not covered; resize with plain nearest or linear")
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        raise node.error(f"keep_aspect_ratio_policy {policy!r} is not covered; give scales")


def _ratio(scale: float) -> Fraction:
    """The simplest fraction that is this float32."""
    simple = Fraction(scale).limit_denominator(1000)
    return simple if np.float32(float(simple)) == np.float32(scale) else Fraction(scale)


def _quotient(length: TDim, frames: TDim) -> Fraction | None:
    """``length / frames`` where that is one number for every value of the symbols."""
    if length.is_const and frames.is_const:
        return Fraction(int(length), int(frames)) if int(frames) and int(length) else None
    shared = length.symbols & frames.symbols
    if len(shared) != 1:
        return None
    (symbol,) = shared
    slope = frames.slope(symbol)
    ratio = length.slope(symbol) / slope if slope else Fraction(0)
    same = ratio > 0 and length * ratio.denominator == frames * ratio.numerator
    return ratio if same else None


def _sampling(node: NodeContext, ratio: Fraction | None) -> Sampling:
    mode = node.text("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise node.error(f"mode {mode!r} is not covered; nearest and linear are")
    old = node.opset < 11
    coordinates = node.text("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    if coordinates not in COORDINATES:
        raise node.error(
            f"coordinate_transformation_mode {coordinates!r} is not covered; {', '.join(COORDINATES)} are"
        )
    rounding = node.text("nearest_mode", "round_prefer_floor")
    if old:
        rounding = "ceil" if ratio is not None and ratio < 1 else "floor"
    if rounding not in ROUNDINGS:
        raise node.error(f"nearest_mode {rounding!r} is not covered; {', '.join(ROUNDINGS)} are")
    return Sampling(COORDINATES[coordinates], ROUNDINGS[rounding] if mode == "nearest" else None)


def _resized(
    node: NodeContext, x: OutletId, axis: int, length: TDim, ratio: Fraction | None, sampling: Sampling
) -> OutletId:
    fact = node.graph.fact(x)
    frames = fact.shape[axis]
    if sampling.rounding is None and not np.issubdtype(fact.dtype, np.floating):
        raise node.error(f"linear resizing of {fact} is covered for floats only")
    if frames == 1:
        return node.wire(Expand(with_dim(fact.shape, axis, length)), [x])
    if not frames.is_const or not length.is_const:
        return node.wire(Interpolate(axis, length, ratio, sampling), [x])
    factor = ratio or Fraction(1)
    first, second, weight = sampling.table(factor, int(frames), int(length))
    if weight is None:
        return node.wire(Gather(axis), [x, node.constant(first, "frames")])
    column = weight.reshape(-1, *(1,) * (fact.rank - 1 - axis)).astype(fact.dtype)
    parts: list[OutletId] = []
    for name, frame, share in (("first", first, 1 - column), ("second", second, column)):
        found = node.wire(Gather(axis), [x, node.constant(frame, f"{name}_frames")], name)
        parts.append(
            node.wire(Elementwise("mul"), [found, node.constant(share, f"{name}_weights")], f"{name}_share")
        )
    return node.wire(Elementwise("add"), parts)


def _image(node: NodeContext) -> tuple[Shape, TDim]:
    shape = node.fact(0).shape
    size = node.integer("blocksize")
    if len(shape) != 4 or size < 1:
        raise node.error(f"{node.fact(0)} must be [N, C, H, W] and blocksize {size} positive")
    return shape, TDim.of(size)


@onnx_op("DepthToSpace")
def depth_to_space(node: NodeContext) -> OutletId:
    """Channels spread over blocks of positions: the block in front of the channels (DCR), or behind (CRD)."""
    (batch, channels, height, width), block = _image(node)
    mode = node.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise node.error(f"mode {mode!r} is not covered; DCR and CRD are")
    left = exact_quotient([channels], [block, block], f"{node.wire_name} (DepthToSpace)")
    inner = (block, block, left) if mode == "DCR" else (left, block, block)
    split = node.wire(Reshape((batch, *inner, height, width)), [node.input(0)], "blocks")
    perm = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    turned = node.wire(Transpose(perm), [split], "positions")
    return node.wire(Reshape((batch, left, height * block, width * block)), [turned])


@onnx_op("SpaceToDepth")
def space_to_depth(node: NodeContext) -> OutletId:
    """Blocks of positions gathered in channels, the block in front of the channels."""
    (batch, channels, height, width), block = _image(node)
    rows, columns = (
        exact_quotient([dim], [block], f"{node.wire_name} (SpaceToDepth)") for dim in (height, width)
    )
    split = node.wire(Reshape((batch, channels, rows, block, columns, block)), [node.input(0)], "blocks")
    turned = node.wire(Transpose((0, 3, 5, 1, 2, 4)), [split], "channels")
    return node.wire(Reshape((batch, channels * block * block, rows, columns)), [turned])
