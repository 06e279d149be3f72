"""Streams of a model against its offline outputs."""

import numpy as np
from onnx import ModelProto

import pulse
from pulse.models import TypedModel
from pulse.program.compiler import BACKENDS, compile_model
from pulse.program.whole import stream_whole
from tests.pulse.cases.build import Feeds
from tests.pulse.onnx.reference import reference


def prove(proto: ModelProto, feeds: Feeds, pulse_frames: int, delay: int | None = None) -> TypedModel:
    """Both backends give what onnxruntime gives for the whole input, every frame and every state."""
    typed = pulse.load(proto).analyse()
    model = typed.declutter().pulsify(pulse=pulse_frames)
    assert delay is None or model.outputs[0].delay == delay
    names = [value.name for value in proto.graph.output]
    wanted = dict(zip(names, reference(proto, feeds), strict=True))
    for backend in BACKENDS:
        got = stream_whole(compile_model(model, backend), feeds)
        for name, expected in wanted.items():
            np.testing.assert_allclose(got[name], expected, 1e-4, 1e-5, err_msg=f"{name}, {backend}")
    return typed
