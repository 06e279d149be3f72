"""Images: sampling, regions, places of pools, affine maps."""

from typing import cast

import numpy as np

from pulse.extend import (
    AddAxis,
    Expand,
    MatMul,
    NodeContext,
    OutletId,
    Pad,
    Reshape,
    ScatterND,
    TDim,
    Transpose,
    operator,
    volume,
)
from pulse_images.attributes import spatial_integers, spatial_pads
from pulse_images.deform import DeformConv
from pulse_images.determinant import Det
from pulse_images.grid import GridSample, SampleMode
from pulse_images.regions import RoiAlign

MODES = {"bilinear": "linear", "bicubic": "cubic", "linear": "linear", "cubic": "cubic", "nearest": "nearest"}
BORDERS = ("zeros", "border", "reflection")


@operator("GridSample")
def grid_sample(node: NodeContext) -> OutletId:
    """Return an image at the points of a grid."""
    mode, border = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    if mode not in MODES or border not in BORDERS:
        raise node.error(f"mode {mode!r} with padding_mode {border!r} is not supported")
    op = GridSample(cast(SampleMode, MODES[mode]), border, node.flag("align_corners"))
    return node.wire(op, [node.input(0), node.input(1)])


@operator("AffineGrid")
def affine_grid(node: NodeContext) -> OutletId:
    """Return the points of an image of a given size, moved by a matrix for each batch."""
    sizes = node.integers(1, "size")[2:]
    rank, corners = len(sizes), node.flag("align_corners")
    axes = [
        np.linspace(-1, 1, size) if corners and size > 1 else (np.arange(size) * 2 + 1) / size - 1
        for size in sizes
    ]
    points = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(sizes)], -1)
    theta = node.fact(0)
    table = node.constant(points.reshape(-1, rank + 1).astype(theta.dtype), "points")
    turned = node.wire(Transpose((0, 2, 1)), [node.input(0)], "theta")
    moved = node.wire(MatMul(), [table, turned], "moved")
    return node.wire(Reshape((theta.shape[0], *map(TDim.of, sizes), TDim.of(rank))), [moved])


@operator("MaxUnpool")
def max_unpool(node: NodeContext) -> OutletId:
    """Return values written to the places that a pool found, zeros elsewhere."""
    x = node.fact(0)
    rank = x.rank - 2
    image_ops = tuple(
        (size - 1) * stride + kernel - before - after
        for size, kernel, stride, (before, after) in zip(
            x.shape[2:],
            spatial_integers(node, "kernel_shape", rank),
            spatial_integers(node, "strides", rank),
            spatial_pads(node, rank),
        )
    )
    inner = (*x.shape[:2], *image_ops)
    empty = node.wire(Expand((volume(inner),)), [node.constant(np.zeros((), x.dtype), "zero")], "empty")
    places = node.wire(
        Reshape((volume(x.shape),)), [node.cast(node.input(1), np.dtype(np.int64), "i64")], "places"
    )
    column = node.wire(AddAxis(1), [places], "column")
    values = node.wire(Reshape((volume(x.shape),)), [node.input(0)], "values")
    y = node.wire(Reshape(inner), [node.wire(ScatterND(), [empty, column, values], "written")], "image")
    outer = node.dims(2, "output_shape") if node.has(2) else inner
    if outer == inner:
        return node.name_result(y)
    return node.wire(Pad(tuple((TDim.of(0), goal - size) for goal, size in zip(outer, inner))), [y])


@operator("RoiAlign")
def roi_align(node: NodeContext) -> OutletId:
    """Return regions brought to one size; since opset 16 pixels lie half a pixel inside by default."""
    kind = node.text("mode", "avg")
    rule = node.text(
        "coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel"
    )
    if kind not in ("avg", "max") or rule not in ("half_pixel", "output_half_pixel"):
        raise node.error(f"mode {kind!r} with {rule!r} is not supported")
    op = RoiAlign(
        kind,
        node.integer("output_height", 1),
        node.integer("output_width", 1),
        node.integer("sampling_ratio", 0),
        node.real("spatial_scale", 1.0),
        rule == "half_pixel",
    )
    return node.wire(op, [node.input(0), node.input(1), node.input(2)])


@operator("DeformConv")
def deform_conv(node: NodeContext) -> OutletId:
    """Return a convolution with an offset for each tap."""
    if node.fact(0).rank != 4:
        raise node.error(f"{node.fact(0)} must have two spatial axes")
    (top, bottom), (left, right) = spatial_pads(node, 2)
    op = DeformConv(
        cast("tuple[int, int]", spatial_integers(node, "strides", 2)),
        cast("tuple[int, int]", spatial_integers(node, "dilations", 2)),
        ((top, bottom), (left, right)),
        node.integer("group", 1),
        node.integer("offset_group", 1),
    )
    inputs = [node.input(0), node.input(1), node.input(2)]
    if node.has(3) or node.has(4):
        zeros = np.zeros(int(node.fact(1).shape[0]), node.fact(0).dtype)
        inputs.append(node.input(3) if node.has(3) else node.constant(zeros, "no_bias"))
    return node.wire(op, [*inputs, node.input(4)] if node.has(4) else inputs)


@operator("Det")
def det(node: NodeContext) -> OutletId:
    """Return the determinant of each matrix."""
    return node.wire(Det(), [node.input(0)])
