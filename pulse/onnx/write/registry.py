"""The registry of functions that write ops; the counterpart of the reader's registry."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pulse.ops.op import Op
from pulse.support.registry import Registry

if TYPE_CHECKING:
    from pulse.onnx.write.node import NodeWriter

P = TypeVar("P", bound=Op)
OnnxWriter: TypeAlias = "Callable[[NodeWriter, P], str | Sequence[str]]"

WRITERS: "Registry[type[Op], OnnxWriter[Any]]" = Registry()
"""Op -> the function that writes it and returns the names of its outputs."""


def writes(*ops: type[P]) -> "Callable[[OnnxWriter[P]], OnnxWriter[P]]":
    """Register the function that writes ops: a decorator."""
    return WRITERS.register(*ops)
