"""Graphs with windows over time."""

import numpy as np

from tests.pulse.tensorflow.graphs import F32, I32, Sketch, noise_array


def dilated_convolution() -> Sketch:
    """A convolution of every third frame, written as blocks of a batch; ``extra`` fills the last block."""
    sketch = Sketch()
    sketch.place("x", 1, -1, 4)
    for name, value in {
        "block": [3],
        "axis": 1,
        "four": [4],
        "three": 3,
        "zero": 0,
        "one": [1],
        "two": [2],
    }.items():
        sketch.const(name, value, np.int32)
    sketch.const("w", noise_array(1, 2, 4, 5))
    sketch.node("shape", "Shape", "x", T=F32, out_type=I32)
    sketch.node("frames", "StridedSlice", "shape", "one", "two", "one", T=I32, Index=I32, shrink_axis_mask=1)
    sketch.node("whole", "AddV2", "frames", "three", T=I32)
    sketch.node("minus", "Neg", "whole", T=I32)
    sketch.node("extra", "FloorMod", "minus", "three", T=I32)
    sketch.node("row", "Pack", "three", "extra", N=2, axis=0, T=I32)
    sketch.node("pads", "Pack", "row", N=1, axis=0, T=I32)
    sketch.node("crop", "Pack", "zero", "extra", N=2, axis=0, T=I32)
    sketch.node("crops", "Pack", "crop", N=1, axis=0, T=I32)
    sketch.node("blocks", "SpaceToBatchND", "x", "block", "pads", T=F32)
    sketch.node("wide", "ExpandDims", "blocks", "axis", T=F32)
    sketch.node("conv", "Conv2D", "wide", "w", T=F32, strides=[1, 1, 1, 1], padding="VALID")
    sketch.node("flat", "Squeeze", "conv", T=F32, squeeze_dims=[1])
    sketch.node("y", "BatchToSpaceND", "flat", "block", "crops", T=F32)
    return sketch


def overlap_added(step: int = 2, parts: int = 3) -> Sketch:
    """Frames of ``step * parts`` samples added where they overlap, by rows that are late by their number."""
    sketch = Sketch()
    sketch.place("x", 1, -1, step * parts)
    frames = {"pads": [[0, 0], [0, parts], [0, 0]], "perm": [0, 2, 1, 3], "axis": [1], "one": [1], "two": [2]}
    for name, value in frames.items():
        sketch.const(name, value, np.int32)
    for name, value in {"parts": parts, "step": step, "single": 1}.items():
        sketch.const(name, value, np.int32)
    sketch.node("padded", "Pad", "x", "pads", T=F32)
    sketch.node("shape", "Shape", "padded", T=F32, out_type=I32)
    sketch.node("frames", "StridedSlice", "shape", "one", "two", "one", T=I32, Index=I32, shrink_axis_mask=1)
    sketch.node("fewer", "Sub", "frames", "single", T=I32)
    sketch.node("all", "Mul", "frames", "parts", T=I32)
    sketch.node("kept", "Mul", "fewer", "parts", T=I32)
    sketch.node("length", "Mul", "fewer", "step", T=I32)
    shapes = {
        "split": ("single", "frames", "parts", "step"),
        "flat": ("single", "all", "step"),
        "rows": ("single", "parts", "fewer", "step"),
        "sound": ("single", "length"),
    }
    for name, parts_ in shapes.items():
        sketch.node(f"{name}_shape", "Pack", *parts_, N=len(parts_), axis=0, T=I32)
    sketch.const("begin", [0, 0, 0], np.int32)
    sketch.const("most", -1, np.int32)
    sketch.node("size", "Pack", "most", "kept", "most", N=3, axis=0, T=I32)
    sketch.node("split", "Reshape", "padded", "split_shape", T=F32)
    sketch.node("turned", "Transpose", "split", "perm", T=F32)
    sketch.node("flat", "Reshape", "turned", "flat_shape", T=F32)
    sketch.node("cut", "Slice", "flat", "begin", "size", T=F32, Index=I32)
    sketch.node("rows", "Reshape", "cut", "rows_shape", T=F32)
    sketch.node("sum", "Sum", "rows", "axis", T=F32, Tidx=I32)
    sketch.node("y", "Reshape", "sum", "sound_shape", T=F32)
    return sketch
