"""Results of another implementation for a model."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, defs
from onnx.reference import ReferenceEvaluator

from tests.pulse.cases.build import Feeds

NEWEST = 26
"""The last opset that onnxruntime runs; of later ones onnx has a reference of its own."""


def reference(model: ModelProto, feeds: Feeds) -> list[np.ndarray]:
    """The outputs, by onnxruntime where it knows the opset; skips where onnx does not know it either."""
    opset = model.opset_import[0].version
    if opset > NEWEST:
        if opset > defs.onnx_opset_version():
            pytest.skip(f"onnx {onnx.__version__} has no reference of opset {opset}")
        return ReferenceEvaluator(model).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)
