"""Integers that a module keeps in tensors: buffers of one integer, such as a stride, and rounded sizes."""

import contextlib
import math
import operator
from collections.abc import Callable, Generator
from typing import Any

from pulse.errors import InputError
from pulse.torch.own_thread import OwnThread
from pulse.torch.preservation import Restore
from pulse.torch.replacements.attributes import replace_attributes


class TracedInt(int):
    """An integer with the methods of a tensor of one integer."""

    def to(self, *_: Any, **__: Any) -> int:
        """Return the number itself: it has no other dtype, and no device."""
        return self

    item = long = int = to

    def __hash__(self) -> "int":
        return super().__hash__()


def _integer_operator(operation: Callable[[Any, Any], Any], swap: bool) -> Callable[[TracedInt, Any], Any]:
    """Return an operator on the plain Python int: symbolic sizes support no other type."""

    def compute(self: TracedInt, other: Any) -> Any:
        number = other.__pos__() if isinstance(other, TracedInt) else other
        return operation(number, +self) if swap else operation(+self, number)

    return compute


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(TracedInt, f"__{_name}__", _integer_operator(getattr(operator, _name), False))
    setattr(TracedInt, f"__r{_name}__", _integer_operator(getattr(operator, _name), True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(TracedInt, f"__{_name}__", _integer_operator(getattr(operator, _name), False))


@contextlib.contextmanager
def trace_ints(torch: Any, module: Any, run: Callable[[], object], restore: Restore) -> Generator[None]:
    """Within this context, buffers of one integer are numbers, and rounded sizes are sizes.

    An exporter does not know what a tensor holds, and so no length computed with such buffers. A buffer stays a tensor
    if the module assigns it, or does not run without it.

    run      the module on its example
    restore  restores its state
    """
    owner = OwnThread()
    functions = {
        name: _wrap_rounding(torch, owner, getattr(torch, name), rounded)
        for name, rounded in ROUNDINGS.items()
    }
    as_tensor = _quotient_itself(torch, owner, torch.as_tensor)
    methods = dict.fromkeys(("to", "item", "long", "int"), TracedInt.to)
    with (
        replace_attributes(torch, as_tensor=as_tensor, **functions),
        replace_attributes(torch.SymInt, **methods),
    ):
        buffers = _to_numbers(torch, module)
        try:
            if buffers:
                alike = _runs_alike(buffers, run)
                _to_tensors(buffers)
                restore()
                buffers = _to_numbers(torch, module) if alike else []
            yield
        finally:
            _to_tensors(buffers)


ROUNDINGS: dict[str, Callable[[Any], Any]] = {"ceil": math.ceil, "floor": math.floor}
"""PyTorch's functions and their equivalents for numbers."""


def _wrap_rounding(torch: Any, owner: OwnThread, function: Any, rounded: Callable[[Any], Any]) -> Any:
    numbers = (int, float, torch.SymInt, torch.SymFloat)

    def round_value(value: Any, *others: Any, **named: Any) -> Any:
        if not isinstance(value, numbers) or not owner.is_here:
            return function(value, *others, **named)
        result = rounded(value)
        return TracedInt(result) if isinstance(result, int) else result

    return round_value


def _quotient_itself(torch: Any, owner: OwnThread, function: Any) -> Any:
    """Return ``torch.as_tensor`` that leaves quotients of sizes unchanged: authors round them with ``torch.ceil``."""

    def convert(value: Any, *others: Any, **named: Any) -> Any:
        if isinstance(value, torch.SymFloat) and owner.is_here:
            return value
        return function(value, *others, **named)

    return convert


_Place = tuple[Any, str, Any]
"""A module, the name of a buffer of it, and the buffer."""


def _to_numbers(torch: Any, module: Any) -> list[_Place]:
    buffers: list[_Place] = []
    for submodule in module.modules():
        for name, value in list(submodule._buffers.items()):
            is_integer = (
                torch.is_tensor(value) and value.dim() == 0 and value.dtype in (torch.int64, torch.int32)
            )
            if (
                is_integer
                and name != "num_batches_tracked"
                and not isinstance(value, torch._subclasses.FakeTensor)
            ):
                buffers.append((submodule, name, value))
                del submodule._buffers[name]
                submodule.__dict__[name] = TracedInt(value.item())
    return buffers


def _to_tensors(buffers: list[_Place]) -> None:
    for module, name, value in buffers:
        module.__dict__.pop(name, None)
        module._buffers[name] = value


def _runs_alike(buffers: list[_Place], run: Callable[[], object]) -> bool:
    """Return whether the module runs with the numbers without assigning any."""
    before = [module.__dict__[name] for module, name, _ in buffers]
    try:
        run()
    except InputError:
        return False
    return all(module.__dict__.get(name) is number for number, (module, name, _) in zip(before, buffers))
