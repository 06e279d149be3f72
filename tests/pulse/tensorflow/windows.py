"""Graphs with windows over time."""

import numpy as np

from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, I32, GraphDefBuilder


def dilated_convolution(axis: int = 1) -> GraphDefBuilder:
    """A convolution of every third frame, written as blocks of a batch; ``extra`` fills the last block.

    axis  the axis that is added around the convolution
    """
    builder = GraphDefBuilder()
    builder.place("x", 1, -1, 4)
    for name, value in {
        "block": [3],
        "axis": axis,
        "four": [4],
        "three": 3,
        "zero": 0,
        "one": [1],
        "two": [2],
    }.items():
        builder.const(name, value, np.int32)
    builder.const("w", normal_noise(1, 2, 4, 5))
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("frames", "StridedSlice", "shape", "one", "two", "one", T=I32, Index=I32, shrink_axis_mask=1)
    builder.node("whole", "AddV2", "frames", "three", T=I32)
    builder.node("minus", "Neg", "whole", T=I32)
    builder.node("extra", "FloorMod", "minus", "three", T=I32)
    builder.node("row", "Pack", "three", "extra", N=2, axis=0, T=I32)
    builder.node("pads", "Pack", "row", N=1, axis=0, T=I32)
    builder.node("crop", "Pack", "zero", "extra", N=2, axis=0, T=I32)
    builder.node("crops", "Pack", "crop", N=1, axis=0, T=I32)
    builder.node("blocks", "SpaceToBatchND", "x", "block", "pads", T=F32)
    builder.node("wide", "ExpandDims", "blocks", "axis", T=F32)
    builder.node("conv", "Conv2D", "wide", "w", T=F32, strides=[1, 1, 1, 1], padding="VALID")
    builder.node("flat", "Squeeze", "conv", T=F32, squeeze_dims=[axis])
    builder.node("y", "BatchToSpaceND", "flat", "block", "crops", T=F32)
    return builder


def overlap_added(step: int = 2, parts: int = 3) -> GraphDefBuilder:
    """Frames of ``step * parts`` samples added where they overlap, by rows that are late by their number."""
    builder = GraphDefBuilder()
    builder.place("x", 1, -1, step * parts)
    frames = {"pads": [[0, 0], [0, parts], [0, 0]], "perm": [0, 2, 1, 3], "axis": [1], "one": [1], "two": [2]}
    for name, value in frames.items():
        builder.const(name, value, np.int32)
    for name, value in {"parts": parts, "step": step, "single": 1}.items():
        builder.const(name, value, np.int32)
    builder.node("padded", "Pad", "x", "pads", T=F32)
    builder.node("shape", "Shape", "padded", T=F32, out_type=I32)
    builder.node("frames", "StridedSlice", "shape", "one", "two", "one", T=I32, Index=I32, shrink_axis_mask=1)
    builder.node("fewer", "Sub", "frames", "single", T=I32)
    builder.node("all", "Mul", "frames", "parts", T=I32)
    builder.node("kept", "Mul", "fewer", "parts", T=I32)
    builder.node("length", "Mul", "fewer", "step", T=I32)
    shapes = {
        "split": ("single", "frames", "parts", "step"),
        "flat": ("single", "all", "step"),
        "rows": ("single", "parts", "fewer", "step"),
        "sound": ("single", "length"),
    }
    for name, parts_ in shapes.items():
        builder.node(f"{name}_shape", "Pack", *parts_, N=len(parts_), axis=0, T=I32)
    builder.const("begin", [0, 0, 0], np.int32)
    builder.const("most", -1, np.int32)
    builder.node("size", "Pack", "most", "kept", "most", N=3, axis=0, T=I32)
    builder.node("split", "Reshape", "padded", "split_shape", T=F32)
    builder.node("turned", "Transpose", "split", "perm", T=F32)
    builder.node("flat", "Reshape", "turned", "flat_shape", T=F32)
    builder.node("cut", "Slice", "flat", "begin", "size", T=F32, Index=I32)
    builder.node("rows", "Reshape", "cut", "rows_shape", T=F32)
    builder.node("sum", "Sum", "rows", "axis", T=F32, Tidx=I32)
    builder.node("y", "Reshape", "sum", "sound_shape", T=F32)
    return builder
