"""Sessions of onnxruntime, the reference of many tests."""

from pathlib import Path
from typing import Any

import onnxruntime
from onnx import ModelProto

from pulse.runtimes.onnx_runtimes import EXACT_INT8_OPTION

FATAL = 4
"""The log level of onnxruntime: errors that end the process only."""


def open_session(model: Path | ModelProto) -> Any:
    """A session on one thread, which logs nothing, and whose sums of codes do not saturate without VNNI."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(*EXACT_INT8_OPTION)
    options.intra_op_num_threads, options.log_severity_level = 1, FATAL
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
