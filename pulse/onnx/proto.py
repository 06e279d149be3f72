"""The messages of ONNX files: the classes of the package onnx, without the rest of that package.

To import onnx takes 60 ms, nearly all of it for what checks, infers and writes models. The messages are one generated
module in it, which needs protobuf alone. It is run here under another name; protobuf has one class for each message, so
where onnx is imported too, a ``ModelProto`` of it is one of these.
"""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING

MODULE = "onnx.onnx_ml_pb2"


def onnx_messages() -> ModuleType:
    """Return the generated module; onnx itself if that is imported, or has no such file."""
    package = None if MODULE in sys.modules else find_spec("onnx")
    module_spec = PathFinder.find_spec(MODULE, package and package.submodule_search_locations)
    if package is None or module_spec is None or module_spec.origin is None:
        return import_module("onnx")
    spec = spec_from_file_location(f"{__name__}.messages", module_spec.origin)
    if spec is None or spec.loader is None:
        return import_module("onnx")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from onnx import (
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        StringStringEntryProto,
        TensorProto,
        TensorShapeProto,
        TypeProto,
        ValueInfoProto,
    )

__all__ = [
    "AttributeProto",
    "FunctionProto",
    "GraphProto",
    "ModelProto",
    "NodeProto",
    "StringStringEntryProto",
    "TensorProto",
    "TensorShapeProto",
    "TypeProto",
    "ValueInfoProto",
]

if not TYPE_CHECKING:
    _messages = onnx_messages()
    globals().update({name: getattr(_messages, name) for name in __all__})
