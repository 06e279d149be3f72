"""The registries of operators: how ONNX's are written as NNEF's, and how NNEF's are read as ONNX's."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pulse.nnef.read.signatures import SIGNATURES, signature
from pulse.nnef.syntax import Name
from pulse.support.registry import Registry

if TYPE_CHECKING:
    from pulse.nnef.read.node import NnefWire, NodeReader
    from pulse.nnef.write.node import OperationWriter

NnefWriter: TypeAlias = "Callable[[OperationWriter], Name | Sequence[Name | None]]"
NnefReader: TypeAlias = "Callable[[NodeReader], NnefWire | Sequence[NnefWire]]"

WRITERS: Registry[str, NnefWriter] = Registry()
"""Operator of ONNX -> the function that writes it and returns the identifiers of the outputs."""
writes = WRITERS.register
READERS: Registry[str, NnefReader] = Registry()
"""Operator of NNEF -> the function that reads it; a list of wires is one result, a tuple several."""


def reads(*names: str, parameters: str) -> Callable[[NnefReader], NnefReader]:
    """Register a function as the reader of operators of NNEF.

    parameters  their parameters, as ``signature`` reads them
    """
    SIGNATURES.update(dict.fromkeys(names, signature(parameters)))
    return READERS.register(*names)
