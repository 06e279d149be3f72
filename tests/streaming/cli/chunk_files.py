"""Chunk models that are written to files."""

import onnx
from onnx import ModelProto


def save_model(name: str, model: ModelProto) -> str:
    onnx.save(model, f"{name}.onnx")
    return f"{name}.onnx"
