# pyright: basic
"""Running products, extremes and sums of exponentials along an axis of any length, as loops over its frames."""

import math
from typing import Any

from pulse.torch.replacements.loops import LoopTracer

RUNNING_FUNCTIONS = ("cumprod", "logcumsumexp", "cummax", "cummin")
"""The names of PyTorch's functions."""
MAX_UNROLLED = 256
"""Maximum size of an axis of constant size along which a result runs; a longer one is left to the exporter."""


def running_result(torch: Any, loops: LoopTracer, name: str, x: Any, dim: int, dtype: Any = None) -> Any:
    """Return the result of ``cumprod``, ``logcumsumexp``, ``cummax`` or ``cummin`` of frames; None for other arguments.

    ONNX has no such operators: each is a loop whose state is the result so far.
    """
    if not x.dim() or (isinstance(x.shape[dim], int) and not 0 < x.shape[dim] <= MAX_UNROLLED):
        return None
    x = x if dtype is None else x.to(dtype)
    dim %= x.dim()
    shape = [*x.shape[:dim], *x.shape[dim + 1 :]]
    if name in ("cummax", "cummin"):
        return _running_extreme(torch, loops, name == "cummax", x, dim, shape)
    if name == "cumprod":
        begin, combine = 1, torch.mul
    else:
        begin, combine = -math.inf, lambda *operands: _log_of_sum(torch, *operands)
    state, results = torch.full(shape, begin, dtype=x.dtype), []
    for step in loops.steps(x.shape[dim]):
        state = combine(state, x.select(dim, step))
        results.append(state)
    return torch.stack(results, dim)


def _log_of_sum(torch: Any, x: Any, y: Any) -> Any:
    """Return ``log(exp(x) + exp(y))``, also of two values that are both minus infinity."""
    distance = torch.where(x == y, torch.zeros_like(x), (x - y).abs())
    return torch.maximum(x, y) + torch.log1p(torch.exp(-distance))


def _running_extreme(
    torch: Any, loops: LoopTracer, greatest: bool, x: Any, dim: int, shape: list[Any]
) -> Any:
    """Return the extreme so far and the index of its last occurrence."""
    if x.is_floating_point():
        minimum, maximum = -math.inf, math.inf
    else:
        minimum, maximum = torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max
    value = torch.full(shape, minimum if greatest else maximum, dtype=x.dtype)
    index = torch.zeros(shape, dtype=torch.int64)
    numbers = torch.arange(x.shape[dim])
    values, indices = [], []
    for step in loops.steps(x.shape[dim]):
        frame = x.select(dim, step)
        replaces = (frame >= value if greatest else frame <= value) | (frame != frame)  # NaN replaces all
        value = torch.where(replaces, frame, value)
        index = torch.where(replaces, numbers.select(0, step), index)
        values.append(value)
        indices.append(index)
    result_class = torch.return_types.cummax if greatest else torch.return_types.cummin
    return result_class((torch.stack(values, dim), torch.stack(indices, dim)))
