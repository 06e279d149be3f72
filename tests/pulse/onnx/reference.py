"""Results of another implementation for a model."""

import numpy as np
from onnx import ModelProto, defs
from onnx.reference import ReferenceEvaluator

from tests.onnxruntime_sessions import open_session
from tests.pulse.cases.build import Feeds

NEWEST = 26
"""The last opset that onnxruntime runs; of later ones onnx has its own reference."""


def has_reference(model: ModelProto) -> bool:
    """Whether onnxruntime or the installed onnx runs the opset of the model."""
    return model.opset_import[0].version <= max(NEWEST, defs.onnx_opset_version())


def reference(model: ModelProto, feeds: Feeds) -> list[np.ndarray]:
    """The outputs of a model that has a reference, by onnxruntime where it knows the opset."""
    if model.opset_import[0].version > NEWEST:
        return ReferenceEvaluator(model).run(None, feeds)
    return open_session(model).run(None, feeds)
