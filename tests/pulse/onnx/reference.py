"""What another implementation gives for a model."""

import numpy as np
import onnxruntime
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from tests.pulse.cases.build import Feeds

NEWEST = 26
"""The last opset that onnxruntime runs; of later ones onnx has a reference of its own."""


def reference(model: ModelProto, feeds: Feeds) -> list[np.ndarray]:
    """The outputs, by onnxruntime where it knows the opset."""
    if model.opset_import[0].version > NEWEST:
        return ReferenceEvaluator(model).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)
