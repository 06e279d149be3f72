"""Checks of streamed attention: against onnxruntime offline, at several pulses, on all backends."""

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto

import pulse
from pulse.models import PulsedModel, TypedModel
from pulse.ops.attention import BandedAttention
from pulse.program.compiler import BACKENDS, compile_model
from pulse.program.whole import run_whole
from pulse.pulsify.bands.attention import band_attention
from tests.pulse.cases.attention import (
    WIDTH,
    Graph,
    Mask,
    heads,
    self_attention,
)
from tests.pulse.cases.build import Feeds, floats
from tests.pulse.onnx.reference import reference

LENGTHS = (1, 2, 5, 13, 31)


def load_lean(proto: ModelProto) -> TypedModel:
    return pulse.load(proto).analyse().declutter()


def at_length(feeds: Feeds, axis: int, length: int) -> Feeds:
    """Random inputs like these, of another length."""
    shapes = {name: list(value.shape) for name, value in feeds.items()}
    for shape in shapes.values():
        shape[axis] = length
    return {name: floats((name, length), *shape) for name, shape in shapes.items()}


def check(
    proto: ModelProto,
    feeds: Feeds,
    axis: int,
    pulses: Sequence[int] = (1, 7),
    lengths: Sequence[int] = LENGTHS,
    max_context: int | None = None,
) -> PulsedModel:
    """Stream every length by every pulse on both backends; gives the model of the last pulse."""
    typed = load_lean(proto)
    models = [typed.pulsify(pulse=n, max_context=max_context) for n in pulses]
    programs = [compile_model(model, backend) for model in models for backend in BACKENDS]
    for length in lengths:
        values = at_length(feeds, axis, length)
        wanted = reference(proto, values)
        for program in programs:
            what = f"{program.backend}, pulse {program.pulse}, {length} frames"
            got, _ = run_whole(program.spawn(), values, np.nan)
            for result, expected in zip(got.values(), wanted, strict=True):
                assert result.shape == expected.shape
                np.testing.assert_allclose(result, expected, 1e-4, 1e-5, err_msg=what)
    return models[-1]


def cut_to_frames(g: Graph, table: str, axes: Sequence[int]) -> str:
    """A stored table, as long as there are frames on some axes."""
    ends = g.add("Unsqueeze", g.frames(), g.integers(0))
    for axis in axes:
        table = g.add("Slice", table, g.integers(0), ends, g.integers(axis), g.integers(1))
    return table


def band_of(proto: ModelProto, max_context: int | None = None) -> BandedAttention:
    """The only attention of a model."""
    typed = load_lean(proto)
    graph = band_attention(typed, typed.find_symbol(None), max_context).model.graph
    (op,) = (node.op for node in graph.nodes if isinstance(node.op, BandedAttention))
    return op


def example(mask: Mask, clean: bool = False) -> tuple[ModelProto, Feeds]:
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return self_attention(mask, clean).model(feeds), feeds


def subsampled_attention(mask: Mask) -> tuple[ModelProto, Feeds]:
    """Two frames become one before the attention."""
    g = Graph(frames_axis=2)
    w = g.constant(floats("w", WIDTH, WIDTH, 2) / 4)
    h = g.add("Conv", "x", w, kernel_shape=[2], strides=[2], pads=[0, 1])
    h = g.add("Transpose", h, perm=[0, 2, 1])
    g.frame_count = g.add("Gather", g.add("Shape", h), g.number(1))
    g.add("Identity", heads(g, h, h, h, mask), name="y")
    feeds = {"x": floats("x", 1, WIDTH, 9)}
    return g.model(feeds), feeds


def upsampled_attention(mask: Mask) -> tuple[ModelProto, Feeds]:
    """One frame becomes two before the attention."""
    g = Graph()
    wide = g.add("MatMul", "x", g.weights(WIDTH, 2 * WIDTH))
    h = g.add("Reshape", wide, g.integers(1, -1, WIDTH))
    g.frame_count = g.add("Gather", g.add("Shape", h), g.number(1))
    g.add("Identity", heads(g, h, h, h, mask), name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return g.model(feeds), feeds
