"""The registries of operators: how ONNX's are written as NNEF's, and how NNEF's are read as ONNX's."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pulse.nnef.read.signatures import SIGNATURES, signature
from pulse.nnef.syntax import Name

if TYPE_CHECKING:
    from pulse.nnef.read.node import NodeReader, Wire
    from pulse.nnef.write.node import OperationWriter

Writer: TypeAlias = "Callable[[OperationWriter], Name | Sequence[Name | None]]"
Reader: TypeAlias = "Callable[[NodeReader], Wire | Sequence[Wire]]"
F = TypeVar("F", bound=Callable[..., object])

WRITERS: dict[str, Writer] = {}
"""Operator of ONNX -> the function that writes it and returns the identifiers of the outputs."""
READERS: dict[str, Reader] = {}
"""Operator of NNEF -> the function that reads it; a list of wires is one result, a tuple several."""


def writes(*names: str) -> Callable[[Writer], Writer]:
    """Register a function as the writer of operators of ONNX."""

    def register(writer: Writer) -> Writer:
        for name in names:
            _enter(WRITERS, name, writer)
        return writer

    return register


def reads(*names: str, takes: str) -> Callable[[Reader], Reader]:
    """Register a function as the reader of operators of NNEF.

    takes  their arguments, as ``signature`` reads them
    """

    def register(reader: Reader) -> Reader:
        for name in names:
            _enter(READERS, name, reader)
            SIGNATURES[name] = signature(takes)
        return reader

    return register


def _enter(registry: dict[str, F], name: str, function: F) -> None:
    if name in registry:
        raise ValueError(f"{name} is registered twice")
    registry[name] = function
