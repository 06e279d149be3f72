"""Streams of a model against its offline outputs."""

from onnx import ModelProto

import pulse
from pulse.models import TypedModel
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import stream_whole
from tests.agreement import Expected
from tests.backends import BACKENDS
from tests.pulse.cases.build import Feeds
from tests.pulse.onnx.reference import reference


def assert_streams(
    proto: ModelProto, feeds: Feeds, pulse_frames: int, delay: int | None = None
) -> TypedModel:
    """Both backends give the offline frames and states, and these are near those of onnxruntime."""
    typed = pulse.load(proto).analyse()
    model = typed.declutter().pulsify(pulse=pulse_frames)
    assert delay is None or model.outputs[0].delay == delay
    names = [value.name for value in proto.graph.output]
    expected = Expected(typed, feeds)
    expected.assert_near(dict(zip(names, reference(proto, feeds), strict=True)), "onnxruntime")
    for backend in BACKENDS:
        expected.assert_agrees(stream_whole(compile_model(model, backend), feeds), backend)
    return typed
