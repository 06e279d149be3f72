"""Writes to a part of a tensor's frames: PyTorch's exporter scatters them, by indices of all frames."""

from importlib import import_module
from typing import Any

OPEN_END = 1 << 62


def translations(torch: Any) -> dict[Any, Any]:
    """Return how ``x[..., 1:] = y`` is written for any number of frames: the first frames are kept, and y follows them.

    Other writes, and those along axes of a constant size, remain as the exporter writes them.
    """
    op = import_module("onnxscript").opset18
    scatter = import_module("onnxscript.function_libs.torch_lib.ops.core").aten_slice_scatter

    def slice_scatter(
        self: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
    ) -> Any:
        to_the_end = step == 1 and (end is None or (type(end) is int and end >= OPEN_END))
        numbers = type(dim) is int and type(start) is int and start > 0
        if not (numbers and to_the_end) or self.shape is None or type(self.shape[dim]) is int:
            return scatter(self, src, dim, start, end, step)
        bounds = (op.Constant(value_ints=[number]) for number in (0, start, dim))
        return op.Concat(op.Slice(self, *bounds), src, axis=dim)

    return {torch.ops.aten.slice_scatter.default: slice_scatter}
