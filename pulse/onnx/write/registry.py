"""The registry of functions that write ops; the counterpart of the reader's registry."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pulse.ops.op import Op
from pulse.support.registry import Registry

if TYPE_CHECKING:
    from pulse.onnx.write.node import NodeWriter

OnnxWriter: TypeAlias = "Callable[[NodeWriter, Any], str | Sequence[str]]"

WRITERS: Registry[type[Op], OnnxWriter] = Registry()
"""Op -> the function that writes it and returns the names of its outputs."""
writes = WRITERS.register
