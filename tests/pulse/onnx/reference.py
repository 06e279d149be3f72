"""Results of another implementation for a model."""

import numpy as np
import onnx
import pytest
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
    """The outputs, by onnxruntime where it knows the opset; skips where onnx does not know it either."""
    opset = model.opset_import[0].version
    if not has_reference(model):
        pytest.skip(f"onnx {onnx.__version__} has no reference of opset {opset}")
    if opset > NEWEST:
        return ReferenceEvaluator(model).run(None, feeds)
    return open_session(model).run(None, feeds)
