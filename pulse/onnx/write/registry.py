"""The registry of functions that write ops; the counterpart of the reader's registry."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pulse.ops.op import Op

if TYPE_CHECKING:
    from pulse.onnx.write.node import NodeWriter

OnnxWriter: TypeAlias = "Callable[[NodeWriter, Any], str | Sequence[str]]"

WRITERS: dict[type[Op], OnnxWriter] = {}
"""Op -> the function that writes it and returns the names of its outputs."""


def writes(op: type[Op]) -> Callable[[OnnxWriter], OnnxWriter]:
    """Register a function as the writer of an op."""

    def register(writer: OnnxWriter) -> OnnxWriter:
        if op in WRITERS:
            raise ValueError(f"{op.__name__} is registered twice")
        WRITERS[op] = writer
        return writer

    return register
