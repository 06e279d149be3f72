"""Elementwise functions that PyTorch's exporter does not write, or writes so that values overflow or lose digits."""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from pulse.ops.elementwise_functions import ERFC_TAIL


def elementwise_result(torch: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the result of an elementwise function composed of others; None for other functions."""
    compose = _FUNCTIONS.get(name.removeprefix("special_"))
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


def _log_of_one_plus(torch: Any, x: Any) -> Any:
    return torch.where(x.abs() < 0.5, 2 * torch.atanh(x / (x + 2)), torch.log(x + 1))


def _exponential_minus_one(torch: Any, x: Any) -> Any:
    half = torch.tanh(x * 0.5)
    return torch.where(x.abs() < 0.5, (half + half) / (1 - half), torch.exp(x) - 1)


def _error_complement(torch: Any, x: Any) -> Any:
    """Return 1 - erf(x), from 0.5 on in the digits of f32; None for f64."""
    if x.dtype == torch.float64:
        return None
    t = 1 / (1 + x.clamp_min(0.5) * 0.5)
    tail = reduce(lambda total, coefficient: total * t + coefficient, ERFC_TAIL) * t
    return torch.where(x < 0.5, 1 - torch.erf(x), tail * torch.exp(-x * x))


def angle_of(torch: Any, y: Any, x: Any) -> Any:
    """Return ``atan2(y, x)``. A zero has no sign; the exporter's form is -pi of y = 0, x < 0."""
    rise, run = y.abs(), x.abs()
    steep = rise > run
    short, long = torch.where(steep, run, rise), torch.where(steep, rise, run)
    flat = torch.atan(torch.where(short == long, long.sign(), short / long))
    acute = torch.where(steep, math.pi / 2 - flat, flat)
    upper = torch.where(x < 0, math.pi - acute, acute)
    return torch.where(y < 0, -upper, upper)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log_sigmoid": _log_sigmoid,
    "logsigmoid": _log_sigmoid,
    "logaddexp": _log_of_sum,
    "logaddexp2": _log2_of_sum,
    "hypot": _hypotenuse,
    "log1p": _log_of_one_plus,
    "expm1": _exponential_minus_one,
    "erfc": _error_complement,
    **dict.fromkeys(("atan2", "arctan2"), angle_of),
}
