"""The registries of operators: how ONNX's are written as NNEF's, and how NNEF's are read as ONNX's."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pulse.nnef.read.signatures import SIGNATURES, signature
from pulse.nnef.syntax import Name

if TYPE_CHECKING:
    from pulse.nnef.read.node import NnefWire, NodeReader
    from pulse.nnef.write.node import OperationWriter

NnefWriter: TypeAlias = "Callable[[OperationWriter], Name | Sequence[Name | None]]"
NnefReader: TypeAlias = "Callable[[NodeReader], NnefWire | Sequence[NnefWire]]"
F = TypeVar("F", bound=Callable[..., object])

WRITERS: dict[str, NnefWriter] = {}
"""Operator of ONNX -> the function that writes it and returns the identifiers of the outputs."""
READERS: dict[str, NnefReader] = {}
"""Operator of NNEF -> the function that reads it; a list of wires is one result, a tuple several."""


def writes(*names: str) -> Callable[[NnefWriter], NnefWriter]:
    """Register a function as the writer of operators of ONNX."""

    def register(writer: NnefWriter) -> NnefWriter:
        for name in names:
            _enter(WRITERS, name, writer)
        return writer

    return register


def reads(*names: str, takes: str) -> Callable[[NnefReader], NnefReader]:
    """Register a function as the reader of operators of NNEF.

    takes  their arguments, as ``signature`` reads them
    """

    def register(reader: NnefReader) -> NnefReader:
        for name in names:
            _enter(READERS, name, reader)
            SIGNATURES[name] = signature(takes)
        return reader

    return register


def _enter(registry: dict[str, F], name: str, function: F) -> None:
    if name in registry:
        raise ValueError(f"{name} is registered twice")
    registry[name] = function
