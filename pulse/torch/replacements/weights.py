# pyright: basic, reportMissingImports=false
"""The large weights of an exported program, kept out of its file."""

from typing import Any

from pulse.facts import Array
from pulse.torch.preservation import ModuleState

MIN_PLACEHOLDER_BYTES = 1 << 14
"""The size in bytes from which a weight is taken out."""


def take_weights(program: Any, state: ModuleState) -> dict[str, Array]:
    """Return the large weights of an exported program by their names; its file then has only their shapes.

    Later changes to the module do not affect them: they are the arrays of ``state``, or copies.
    """
    from onnx_ir import ExternalTensor

    initializers = program.model.graph.initializers
    for name in [
        name for name, value in initializers.items() if not (value.uses() or value.is_graph_output())
    ]:
        del initializers[name]  # such as tensors created in the export, which have no values
    arrays: dict[str, Array] = {}
    for name, value in initializers.items():
        tensor = value.const_value
        if (
            tensor is None
            or tensor.nbytes < MIN_PLACEHOLDER_BYTES
            or tensor.dtype.name not in ("FLOAT", "DOUBLE")
        ):
            continue
        array = tensor.numpy()
        original = state.find(array)
        arrays[name] = array.copy() if original is None else original
        value.const_value = ExternalTensor(
            name, 0, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=name
        )
    return arrays
