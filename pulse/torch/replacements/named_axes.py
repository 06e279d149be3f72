"""Functions of einx, which addresses axes by name and fixes their lengths as numbers."""

import contextlib
import re
import sys
from collections.abc import Callable, Generator
from functools import reduce
from typing import Any

from pulse.torch.own_thread import OwnThread
from pulse.torch.replacements.attributes import replace_attributes

FUNCTIONS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "true_divide",
    "true_divide": "true_divide",
    "maximum": "maximum",
    "minimum": "minimum",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
}
"""Functions of two or more operands: their names in einx and in PyTorch."""
_TOKEN = re.compile(r"\.\.\.|[A-Za-z_]\w*|1|\S")
_REST = "..."


@contextlib.contextmanager
def keep_named_axes(torch: Any) -> Generator[None]:
    """Within this context, elementwise functions of einx run as PyTorch's, on operands with their axes moved.

    Patterns with brackets, parentheses or numbers, and other threads, are unaffected.
    """
    einx = sys.modules.get("einx")
    owner = OwnThread()
    functions = {
        name: _named_axes_function(
            torch, owner, getattr(einx, name), getattr(torch, FUNCTIONS.get(name, name))
        )
        for name in (*FUNCTIONS, "where")
        if hasattr(einx, name)
    }
    with replace_attributes(einx, **functions):
        yield


def _named_axes_function(torch: Any, owner: OwnThread, original: Any, function: Callable[..., Any]) -> Any:
    def compute(pattern: Any, *operands: Any, **named: Any) -> Any:
        axes = _read_pattern(torch, pattern, operands) if owner.is_here and not named else None
        if axes is None:
            return original(pattern, *operands, **named)
        *input_axes, result = axes
        moved = [_move(torch, x, names, result) for x, names in zip(operands, input_axes)]
        return function(*moved) if function is torch.where else reduce(function, moved)

    return compute


def _read_pattern(torch: Any, pattern: Any, operands: tuple[Any, ...]) -> list[list[str]] | None:
    """Return the axes of each operand and of the result, or None if the pattern has more than names."""
    if not isinstance(pattern, str) or pattern.count("->") != 1:
        return None
    operand_axes, result = pattern.split("->")
    texts = operand_axes.split(",")
    if len(texts) != len(operands):
        return None
    rest = 0
    axes: list[list[str]] = []
    for text in (*texts, result):
        tokens = _TOKEN.findall(text)
        if any(not (token == _REST or token.isidentifier() or token == "1") for token in tokens):
            return None
        axes.append(tokens)
    for x, tokens in zip(operands, axes):
        if torch.is_tensor(x) and _REST in tokens:
            rest = max(rest, x.dim() - len(tokens) + 1)
    axes = [_without_rest(tokens, rest) for tokens in axes]
    letters = {token for tokens in axes[:-1] for token in tokens}
    names = [token for token in axes[-1] if token != "1"]
    fits = all(
        len(tokens) == (x.dim() if torch.is_tensor(x) else 0) and len(set(tokens)) == len(tokens)
        for x, tokens in zip(operands, axes)
    )
    plain = "1" not in letters and len(set(names)) == len(names) and letters == set(names)
    return axes if fits and plain else None


def _without_rest(tokens: list[str], rest: int) -> list[str]:
    """Replace ``...`` with a name for each of its axes."""
    return [
        name for token in tokens for name in ([f".{n}" for n in range(rest)] if token == _REST else [token])
    ]


def _move(torch: Any, x: Any, axes: list[str], result: list[str]) -> Any:
    if not torch.is_tensor(x) or not axes:
        return x
    present = [name for name in result if name in axes]
    x = x.permute([axes.index(name) for name in present])
    return x[tuple(slice(None) if name in axes else None for name in result)]
