"""Models of chunks as files."""

import onnx

from tests.streaming.command import folder as folder


def saved(name, model):
    onnx.save(model, f"{name}.onnx")
    return f"{name}.onnx"
