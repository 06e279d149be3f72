"""Models of chunks as files."""

import onnx

from tests.streaming.command import folder as folder


def save_model(name, model):
    onnx.save(model, f"{name}.onnx")
    return f"{name}.onnx"
