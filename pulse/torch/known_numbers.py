# pyright: basic
"""Tensors that are computed from a length alone, and so hold one number."""

import math
import operator
from collections.abc import Callable
from typing import Any

UNCHANGED_FUNCTIONS = {
    *("clone", "contiguous", "detach", "to", "long", "int", "float", "cpu"),
    *("unsqueeze", "squeeze", "view", "reshape", "flatten", "expand", "__getitem__"),
    *("max", "min", "amax", "amin"),
}
"""Functions of a tensor of equal integers that return the same integers."""
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "rsub": lambda x, y: y - x,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv,
    "truediv": operator.truediv,
    "ceil": math.ceil,
    "floor": math.floor,
}
"""Arithmetic of such tensors and numbers."""
QUOTIENTS = {None: operator.truediv, "floor": operator.floordiv}
"""What ``div`` computes by its ``rounding_mode``."""


class KnownNumbers:
    """The numbers of tensors that are computed from a length alone; they convert to a size.

    An exporter does not know the values of tensors, so it does not know lengths that a module reads from them either.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._sizes = (torch.SymInt, torch.SymFloat)
        self._numbers: dict[int, tuple[Any, Any]] = {}

    def watch(self) -> Any:
        """Return a context in which functions of known tensors return known ones."""
        call = self._call

        class Watch(self._torch.overrides.TorchFunctionMode):
            def __torch_function__(
                self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
            ) -> Any:
                return call(function, args, kwargs or {})

        return Watch()

    def full(self, shape: Any, number: Any, dtype: Any) -> Any:
        """Return a known tensor, all of whose elements are the number."""
        return self._note(self._torch.full(shape, number, dtype=dtype), number)

    def number(self, value: Any) -> Any:
        """Return the number that all elements of a tensor equal, or None if unknown."""
        tensor, number = self._numbers.get(id(value), (None, None))
        return number if tensor is value else None

    def _note(self, tensor: Any, number: Any) -> Any:
        self._numbers[id(tensor)] = tensor, number
        return tensor

    def _call(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        torch = self._torch
        number = self.number(args[0]) if args else None
        name = getattr(function, "__name__", "")
        if name in ("_pack_padded_sequence", "_pad_packed_sequence"):
            result = function(*args, **named)
            self._note(result[1], self.number(args[1]))  # lengths, then batch sizes, then lengths again
            return result
        if number is None:
            return function(*args, **named)
        if name == "item" and isinstance(number, (int, *self._sizes)) and not args[0].is_floating_point():
            return number
        if name == "sort" and args[0].dim() == 1:
            return torch.return_types.sort((self._note(args[0].clone(), number), torch.arange(len(args[0]))))
        if name == "tolist" and isinstance(number, self._sizes):
            return [number] * args[0].numel() if args[0].dim() else number
        result = function(*args, **named)
        if torch.is_tensor(result):
            number_after = self._derive(name, number, args, named)
            if number_after is not None:
                whole = isinstance(number_after, int | torch.SymInt) or result.is_floating_point()
                number_after = number_after if whole else math.trunc(number_after)
                if name not in UNCHANGED_FUNCTIONS and isinstance(number_after, torch.SymInt):
                    result = torch.full(result.shape, number_after, dtype=result.dtype)
                self._note(result, number_after)
            elif result is args[0]:
                del self._numbers[id(result)]  # the tensor was written to
        return result

    def _derive(self, name: str, number: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the number of a function's result, if its first argument has a known one; None if unknown."""
        if name == "__getitem__":
            return number
        numbers = [self.number(arg) for arg in args[1:]]
        operands = [
            number,
            *(argument if known is None else known for argument, known in zip(args[1:], numbers)),
        ]
        if name == "clamp" and type(number) is int and set(named) <= {"min"} and len(args) == 1:
            minimum = named.get("min")
            return max(number, minimum) if type(minimum) is int else None
        if any(map(self._torch.is_tensor, operands)) or (name.endswith("_") and not name.startswith("__")):
            return None
        if name in UNCHANGED_FUNCTIONS:
            return number
        if not all(
            type(operand) in (int, self._torch.SymInt) for operand in operands[1:]
        ):  # a bool is not a length
            return None
        plain = name.strip("_")
        if plain == "div" and set(named) <= {"rounding_mode"}:
            function = QUOTIENTS.get(named.get("rounding_mode"))
            return None if function is None else function(*operands)
        return ARITHMETIC[plain](*operands) if plain in ARITHMETIC and not named else None
