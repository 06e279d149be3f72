"""Resizing; written as frames that are looked up and mixed."""

from collections.abc import Sequence
from fractions import Fraction
from typing import get_args

import numpy as np

from pulse.dim import TDim
from pulse.facts import F64, Array
from pulse.graph import OutletId
from pulse.infer.inference_node import same_type_and_rank
from pulse.infer.node_context import NodeContext
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.dims import constant_quotient
from pulse.ops.gather import Gather
from pulse.ops.matmul import MatMul
from pulse.ops.resize import Interpolate, Polyphase
from pulse.ops.resize_sampling import (
    ROUNDING,
    WHOLE,
    Coordinates,
    Crop,
    NearestMode,
    Sampling,
    simple_fraction,
)
from pulse.ops.shape import Expand, Transpose, with_dim
from pulse.ops.slice import Slice
from pulse.support.wording import count_of, spell

COORDINATES: dict[str, Coordinates] = {name: name for name in get_args(Coordinates)}

ROUNDINGS: dict[str, NearestMode] = {name: name for name in ROUNDING}

MIN_SCALE = 2.0**-20
"""A smaller factor, or one above its inverse, is an error."""

MAX_SUMMED_LOOKUPS = 4
"""An output of more input elements is a product with a matrix, not a sum of lookups."""

ResizedAxes = dict[int, tuple[TDim, Fraction | None]]
"""For each axis that changes its new length, and the factor if that is constant."""


@onnx_op("Resize", "Upsample")
def resize(node: NodeContext) -> OutletId:
    """Resize one axis after another; use lookups if the length is constant."""
    plan = _plan(node)
    x = node.input(0)
    for axis, (length, ratio) in plan.items():
        name = node if axis == list(plan)[-1] else node.with_name(f"{node.wire_name}.axis{axis}")
        x = _resize_axis(name, x, axis, length, ratio, _sampling(node, axis, ratio))
    return x


def _plan(node: NodeContext) -> ResizedAxes:
    shape = node.fact(0).shape
    axes = _axes(node)
    scales = _scales(node)
    sizes: Sequence[TDim] = node.dims(3, "sizes") if not scales and node.has(3) else ()
    if len(scales or sizes) != len(axes):
        raise node.error(
            f"{count_of(len(scales), 'scale')} and {count_of(len(sizes), 'size')} for "
            f"{count_of(len(axes), 'axis', 'axes')}; give one of the two"
        )
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if sizes and policy != "stretch":
        return _keep_aspect(node, policy, axes, sizes)
    cropped = [axis for axis in axes if _crop(node, axis) != WHOLE]
    plan: ResizedAxes = {}
    for index, axis in enumerate(axes):
        if scales:
            if not MIN_SCALE <= scales[index] <= 1 / MIN_SCALE:
                raise node.error(f"scale {scales[index]} is not between {MIN_SCALE:g} and {1 / MIN_SCALE:g}")
            ratio = simple_fraction(scales[index])
            if ratio != 1 or axis in cropped:
                plan[axis] = shape[axis] * ratio.numerator // ratio.denominator, ratio
        elif sizes[index] != shape[axis] or axis in cropped:
            plan[axis] = sizes[index], constant_quotient(sizes[index], shape[axis])
    return plan


def _axes(node: NodeContext) -> list[int]:
    rank = node.fact(0).rank
    return [node.axis(axis, rank) for axis in node.integer_list("axes", range(rank))]


def _scales(node: NodeContext) -> list[float]:
    if node.op_type == "Upsample" and node.opset < 9:
        return list(node.real_list("scales"))
    slot = 1 if node.opset < 11 else 2
    has_scales = node.has(slot) and node.fact(slot).shape != (TDim.of(0),)
    return [float(scale) for scale in node.numbers(slot, "scales").ravel()] if has_scales else []


def _keep_aspect(node: NodeContext, policy: str, axes: Sequence[int], sizes: Sequence[TDim]) -> ResizedAxes:
    """Return one factor for all axes: the smallest or the largest of the requested ones."""
    choices = {"not_larger": min, "not_smaller": max}
    if policy not in choices:
        raise node.error(f"keep_aspect_ratio_policy {policy!r} is not stretch, not_larger or not_smaller")
    frames = [node.fact(0).shape[axis] for axis in axes]
    if not all(dim.is_const and int(dim) > 0 for dim in (*frames, *sizes)):
        raise node.error(f"keep_aspect_ratio_policy {policy!r} needs constant sizes; give scales")
    ratio = choices[policy](Fraction(int(size), int(count)) for size, count in zip(sizes, frames))
    return {
        axis: (TDim.of(int(count * ratio + Fraction(1, 2))), ratio)
        for axis, count in zip(axes, map(int, frames))
    }


def _sampling(node: NodeContext, axis: int, ratio: Fraction | None) -> Sampling:
    mode = node.text("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic"):
        raise node.error(f"mode {mode!r} is not supported; use nearest, linear or cubic")
    old = node.opset < 11
    coordinates = node.text("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    if coordinates not in COORDINATES:
        raise node.error(
            f"coordinate_transformation_mode {coordinates!r} is not supported; {', '.join(COORDINATES)} are"
        )
    rounding = node.text("nearest_mode", "round_prefer_floor")
    if old:
        rounding = "ceil" if ratio is not None and ratio < 1 else "floor"
    if rounding not in ROUNDINGS:
        raise node.error(f"nearest_mode {rounding!r} is not supported; {', '.join(ROUNDINGS)} are")
    return Sampling(
        COORDINATES[coordinates],
        ROUNDINGS[rounding] if mode == "nearest" else None,
        node.real("cubic_coeff_a", -0.75) if mode == "cubic" else None,
        node.flag("antialias"),
        node.flag("exclude_outside"),
        _crop(node, axis),
    )


def _crop(node: NodeContext, axis: int) -> Crop:
    """Return the start and the end of the region of interest on an axis, from 0 to 1."""
    if node.text("coordinate_transformation_mode", "") != "tf_crop_and_resize":
        return WHOLE
    axes, region = _axes(node), node.numbers(1, "region of interest").ravel()
    if region.size != 2 * len(axes) or not np.isfinite(region).all():
        raise node.error(f"its region of interest must be {2 * len(axes)} numbers, two for each axis")
    start, end = (simple_fraction(float(region[axes.index(axis) + offset])) for offset in (0, len(axes)))
    return start, end


def _resize_axis(
    node: NodeContext, x: OutletId, axis: int, length: TDim, ratio: Fraction | None, sampling: Sampling
) -> OutletId:
    fact = node.graph.fact(x)
    frames = fact.shape[axis]
    if ratio is None and _doubles(frames, length, sampling):
        twice = node.wire(Interpolate(axis, frames * 2, Fraction(2), sampling), [x], "twice")
        return node.wire(Slice(axis, TDim.of(0), length), [twice])
    cropped = sampling.coordinates == "tf_crop_and_resize"
    if sampling.rounding is None and not np.issubdtype(fact.dtype, np.floating):
        raise node.error(f"linear and cubic resizing of {fact} is only supported for floats")
    if frames == 1 and not cropped:
        return node.wire(Expand(with_dim(fact.shape, axis, length)), [x])
    if (
        not frames.is_const
        or not length.is_const
        or not node.try_take_elements(max(int(frames), int(length)))
    ):
        if cropped:
            raise node.error(
                f"cropping {frames} to {count_of(length, 'frame')}: give both as numbers with {spell('inputs')}"
            )
        return node.wire(Interpolate(axis, length, ratio, sampling), [x])
    factor = ratio or Fraction(1)
    outside = (
        sampling.positions_outside(factor, int(frames), int(length)) if cropped else np.zeros(0, np.bool_)
    )
    y = _look_up(
        node, x, axis, *sampling.table(factor, int(frames), int(length)), "inside" if outside.any() else ""
    )
    if not outside.any():
        return y
    column = node.constant(outside.reshape(-1, *(1,) * (fact.rank - 1 - axis)), "outside")
    fill = node.scalar_constant(node.real("extrapolation_value", 0.0), fact, "fill")
    return node.apply("where", column, fill, y)


def _doubles(frames: TDim, length: TDim, sampling: Sampling) -> bool:
    """Return whether each frame is taken twice, and the last one perhaps once.

    With ``frames = (length + 1) // 2``, output j is frame ``floor(j * frames / length)``. This is ``floor(j / 2)``: the
    quotient is j / 2 if the length is even, else ``j / 2 + j / (2 * length)``, where the second term is below 1/2.
    PyTorch and onnxruntime compute it in f32, which takes the next frame at some places of long streams of odd length.
    """
    nearest = (sampling.coordinates, sampling.rounding) == ("asymmetric", "floor")
    return nearest and not length.is_const and frames == (length + 1) // 2


def _look_up(
    node: NodeContext, x: OutletId, axis: int, frames: Array, weights: Array | None, suffix: str
) -> OutletId:
    """Return the sum over k of ``x[frames[:, k]] * weights[:, k]`` along an axis; for many k as a product."""
    if weights is None:
        return node.wire(Gather(axis), [x, node.constant(frames[:, 0], "frames")], suffix)
    if frames.shape[1] > MAX_SUMMED_LOOKUPS:
        return _product(node, x, axis, frames, weights, suffix)
    fact = node.graph.fact(x)
    columns = weights.T.reshape(*weights.T.shape, *(1,) * (fact.rank - 1 - axis)).astype(fact.dtype)
    parts: list[OutletId] = []
    for k, column in enumerate(columns):
        frame = node.wire(Gather(axis), [x, node.constant(frames[:, k], f"frames{k}")], f"frame{k}")
        share = node.constant(column, f"weights{k}")
        parts.append(node.apply("mul", frame, share, suffix=f"share{k}"))
    return node.apply("sum", *parts, suffix=suffix)


def _product(
    node: NodeContext, x: OutletId, axis: int, frames: Array, weights: Array, suffix: str
) -> OutletId:
    fact = node.graph.fact(x)
    node.take_elements(int(fact.shape[axis]) * len(frames), "table of weights")
    matrix = np.zeros((int(fact.shape[axis]), len(frames)))
    np.add.at(matrix, (frames, np.arange(len(frames))[:, None]), weights)
    constant = node.constant(matrix.astype(fact.dtype), "weights")
    if axis == fact.rank - 1:
        return node.wire(MatMul(), [x, constant], suffix)
    perm = list(range(fact.rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    swap = Transpose(tuple(perm))
    y = node.wire(MatMul(), [node.wire(swap, [x], "last"), constant], "product")
    return node.wire(swap, [y], suffix)


rule("Resize", "Upsample")(same_type_and_rank)


@writes(Polyphase)
def write_polyphase(w: NodeWriter, op: Polyphase) -> str:
    """Compute each group of output frames from its position among the input frames."""
    groups = w.output_shape()[op.axis] // len(op.taps)
    tap_count = max(len(taps) for taps in op.taps)
    equal_taps = [(*taps, *((taps[0][0], 0.0),) * (tap_count - len(taps))) for taps in op.taps]
    frames = np.array([[frame for frame, _ in taps] for taps in equal_taps])
    weights = np.array([[weight for _, weight in taps] for taps in equal_taps])
    starts = np.arange(groups)[:, None, None] * op.stride
    nearest = tap_count == 1
    return _weigh_frames(
        w,
        op.axis,
        (starts + frames).reshape(-1, tap_count),
        None if nearest else np.tile(weights, (groups, 1)),
    )


@writes(Interpolate)
def write_interpolate(w: NodeWriter, op: Interpolate) -> str:
    """Resize an axis that does not stream: its length is a number."""
    frames, length = w.sizes()[op.axis], w.output_shape()[op.axis]
    ratio = Fraction(length, frames) if op.ratio is None else op.ratio
    return _weigh_frames(w, op.axis, *op.sampling.table(ratio, frames, length))


def _weigh_frames(w: NodeWriter, axis: int, frames: Array, weights: Array | None) -> str:
    """Return the frames ``[length, k]`` along an axis, with their weights; None for the nearest one."""
    (x,) = w.inputs
    if weights is None:
        return w.emit("Gather", [x, w.integers(frames[:, 0].tolist(), "frames")], axis=axis)
    floating = np.issubdtype(w.dtype(), np.floating)
    wide = w.dtype() if floating else F64
    source = x if floating else w.cast(x, wide, "wide")
    ones = (1,) * (len(w.sizes()) - 1 - axis)
    parts: list[str] = []
    for index, (indices, shares) in enumerate(zip(frames.T, weights.T)):
        part = w.emit(
            "Gather", [source, w.integers(indices.tolist(), "indices")], f"neighbour{index}", axis=axis
        )
        share = w.constant(shares.reshape(-1, *ones).astype(wide), f"share{index}")
        parts.append(w.emit("Mul", [part, share], f"part{index}"))
    if floating:
        return w.emit("Sum", parts)
    return w.cast(w.emit("Sum", parts, "mixed"), w.dtype())
