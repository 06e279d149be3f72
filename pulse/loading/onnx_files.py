"""Reading the nodes of ONNX files."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pulse.facts import Array
from pulse.models import Model, model_of

if TYPE_CHECKING:
    from pulse.onnx.read.file import ModelSource


def read_onnx(
    source: "ModelSource",
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    ignore_value_info: bool = False,
    budget: Mapping[str, float] | None = None,
    tensors: Mapping[str, Array] | None = None,
) -> Model:
    """Read the nodes of an ONNX file from a path, its bytes or a ModelProto.

    inputs, constants, ignore_value_info, budget   see ``pulse.load``
    tensors  initializers whose data is not in the model, by name
    Raises   LoadError: the file cannot be read, or ``inputs`` or ``constants`` does not fit it
    """
    from pulse.onnx.read.reader import load

    return model_of(load(source, inputs, constants, ignore_value_info, budget, tensors))
