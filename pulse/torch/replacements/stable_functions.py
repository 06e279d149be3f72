"""Elementwise functions that PyTorch's exporter does not write, or writes so that large values overflow."""

import math
from collections.abc import Callable
from typing import Any


def elementwise_result(torch: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the result of an elementwise function composed of others; None for other functions."""
    compose = _FUNCTIONS.get(name)
    if compose is None or named or not all(torch.is_tensor(argument) for argument in args[:1]):
        return None
    if any(torch.is_tensor(argument) and not argument.is_floating_point() for argument in args):
        return None
    return compose(torch, *args)


def _log_sigmoid(torch: Any, x: Any) -> Any:
    return -torch.nn.functional.softplus(-x)


def _log_of_sum(torch: Any, left: Any, right: Any) -> Any:
    """Return log(exp(left) + exp(right)), by the larger one: sums of its exponential overflow."""
    correction = torch.log1p(torch.exp(-(left - right).abs()))
    return torch.where(left == right, left + math.log(2), torch.maximum(left, right) + correction)


def _log2_of_sum(torch: Any, left: Any, right: Any) -> Any:
    correction = torch.log1p(torch.exp(-(left - right).abs() * math.log(2))) / math.log(2)
    return torch.where(left == right, left + 1, torch.maximum(left, right) + correction)


def _hypotenuse(torch: Any, left: Any, right: Any) -> Any:
    """Return the length of two sides, by the longer one: its square overflows. An infinite side makes it infinite."""
    left, right = left.abs(), right.abs()
    longer, shorter = torch.maximum(left, right), torch.minimum(left, right)
    ratio = shorter / torch.where(longer > 0, longer, 1)
    infinite = (left == math.inf) | (right == math.inf)
    return torch.where(infinite, math.inf, longer * torch.sqrt(1 + ratio * ratio))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log_sigmoid": _log_sigmoid,
    "logsigmoid": _log_sigmoid,
    "logaddexp": _log_of_sum,
    "logaddexp2": _log2_of_sum,
    "hypot": _hypotenuse,
}
