"""Checks of streamed attention: against onnxruntime offline, at several pulses, on all backends."""

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto

import pulse
from pulse.models import PulsedModel, TypedModel
from pulse.ops.attention import BandedAttention
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import run_whole
from pulse.pulsify.bands.attention import band_attention
from tests.backends import BACKENDS
from tests.pulse.cases.attention import (
    WIDTH,
    AttentionBuilder,
    Mask,
    heads,
    self_attention,
)
from tests.pulse.cases.build import Feeds, floats
from tests.pulse.onnx.reference import reference

LENGTHS = (1, 2, 5, 13, 31)


def load_decluttered(proto: ModelProto) -> TypedModel:
    return pulse.load(proto).analyse().declutter()


def at_length(feeds: Feeds, axis: int, length: int) -> Feeds:
    """Random inputs like these, of another length."""
    shapes = {name: list(value.shape) for name, value in feeds.items()}
    for shape in shapes.values():
        shape[axis] = length
    return {name: floats((name, length), *shape) for name, shape in shapes.items()}


def assert_streams_agree(
    proto: ModelProto,
    feeds: Feeds,
    axis: int,
    pulses: Sequence[int] = (1, 7),
    lengths: Sequence[int] = LENGTHS,
    max_context: int | None = None,
) -> PulsedModel:
    """Stream every length by every pulse on both backends; gives the model of the last pulse."""
    typed = load_decluttered(proto)
    models = [typed.pulsify(pulse=n, max_context=max_context) for n in pulses]
    programs = [compile_model(model, backend) for model in models for backend in BACKENDS]
    for length in lengths:
        values = at_length(feeds, axis, length)
        references = reference(proto, values)
        for program in programs:
            context = f"{program.backend}, pulse {program.pulse}, {length} frames"
            outputs, _ = run_whole(program.spawn(), values, np.nan)
            for result, expected in zip(outputs.values(), references, strict=True):
                assert result.shape == expected.shape
                np.testing.assert_allclose(result, expected, 1e-4, 1e-5, err_msg=context)
    return models[-1]


def cut_to_frames(graph: AttentionBuilder, table: str, axes: Sequence[int]) -> str:
    """A stored table, as long as there are frames on some axes."""
    ends = graph.add("Unsqueeze", graph.frames(), graph.integers(0))
    for axis in axes:
        table = graph.add("Slice", table, graph.integers(0), ends, graph.integers(axis), graph.integers(1))
    return table


def band_of(proto: ModelProto, max_context: int | None = None) -> BandedAttention:
    """The only attention of a model."""
    typed = load_decluttered(proto)
    graph = band_attention(typed, typed.find_symbol(None), max_context).model.graph
    (op,) = (node.op for node in graph.nodes if isinstance(node.op, BandedAttention))
    return op


def attention_example(mask: Mask, clean: bool = False) -> tuple[ModelProto, Feeds]:
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return self_attention(mask, clean).model(feeds), feeds


def subsampled_attention(mask: Mask) -> tuple[ModelProto, Feeds]:
    """Two frames become one before the attention."""
    graph = AttentionBuilder(frames_axis=2)
    w = graph.constant(floats("w", WIDTH, WIDTH, 2) / 4)
    h = graph.add("Conv", "x", w, kernel_shape=[2], strides=[2], pads=[0, 1])
    h = graph.add("Transpose", h, perm=[0, 2, 1])
    graph.frame_count = graph.add("Gather", graph.add("Shape", h), graph.number(1))
    graph.add("Identity", heads(graph, h, h, h, mask), name="y")
    feeds = {"x": floats("x", 1, WIDTH, 9)}
    return graph.model(feeds), feeds


def upsampled_attention(mask: Mask) -> tuple[ModelProto, Feeds]:
    """A model that doubles each frame before the attention."""
    graph = AttentionBuilder()
    wide = graph.add("MatMul", "x", graph.weights(WIDTH, 2 * WIDTH))
    h = graph.add("Reshape", wide, graph.integers(1, -1, WIDTH))
    graph.frame_count = graph.add("Gather", graph.add("Shape", h), graph.number(1))
    graph.add("Identity", heads(graph, h, h, h, mask), name="y")
    feeds = {"x": floats("x", 1, 9, WIDTH)}
    return graph.model(feeds), feeds
