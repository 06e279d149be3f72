# pyright: basic
"""Keep sizes symbolic in a module's ``int(x.shape[-1] / 4)``, ``math.ceil(n / 4)`` and ``len(x)``."""

import builtins
import contextlib
import sys
from collections.abc import Generator
from importlib import import_module
from typing import Any

from pulse.torch.own_thread import OwnThread
from pulse.torch.replacements.attributes import replace_attributes
from pulse.torch.replacements.loop_steps import LoopStep, StepNumber, choose_number, truncate
from pulse.torch.replacements.loops import LoopTracer

TORCH_PACKAGE = "torch"
"""The package whose code is not changed."""


@contextlib.contextmanager
def trace_sizes(torch: Any, module: Any, loops: LoopTracer) -> Generator[None]:
    """Within this context, ``int``, ``len``, ``range``, ``enumerate`` and quotients of sizes keep them symbolic.

    Python lets these functions return only numbers, so an export that passes through them fixes the length: they are
    replaced in the files of the module's classes. ``max`` and ``min`` of a size and a bound return the one that the
    example selects; the model refuses lengths that would select the other. A quotient keeps both of its integers, so
    that its floor and ceiling are computed in integers. Other threads are unaffected.

    loops  records the loops over all frames
    """
    owner = OwnThread()
    names: dict[str, Any] = {
        "int": _symbolic_int(torch, owner),
        "len": _symbolic_len(torch, owner),
        "range": _symbolic_range(torch, owner, loops),
        "enumerate": _step_numbers(owner, loops),
        "max": _choice(torch, owner, builtins.max, lambda left, right: right > left),
        "min": _choice(torch, owner, builtins.min, lambda left, right: right < left),
    }
    changed: list[tuple[dict[str, Any], str]] = []
    for namespace in _namespaces(module):
        for name, meaning in names.items():
            if name not in namespace:
                namespace[name] = meaning
                changed.append((namespace, name))
    methods = {
        "__truediv__": _exact_division(torch, owner, torch.SymInt.__truediv__),
        "__floor__": _give_itself,
        "__ceil__": _give_itself,
        "__trunc__": _give_itself,
    }
    constraints = import_module("torch.fx.experimental.symbolic_shapes").DimConstraints
    solve = _solve_if_possible(constraints.solve)
    try:
        with replace_attributes(torch.SymInt, **methods), replace_attributes(constraints, solve=solve):
            yield
    finally:
        for namespace, name in changed:
            namespace.pop(name, None)


def _namespaces(module: Any) -> list[dict[str, Any]]:
    """Return the globals of the files that define the module's classes and their bases."""
    files = {
        base.__module__
        for submodule in module.modules()
        for base in type(submodule).__mro__
        if base.__module__.split(".")[0] not in (TORCH_PACKAGE, "builtins")
    }
    packages = {name.split(".")[0] for name in files}
    return [
        vars(loaded)
        for name, loaded in list(sys.modules.items())
        if loaded is not None
        and (name in files or (name.split(".")[0] in packages and _is_near(name, files)))
    ]


def _is_near(name: str, files: set[str]) -> bool:
    """Return whether a file is in the folder of one of the files, as the helpers of a model are."""
    return name.rpartition(".")[0] in {file.rpartition(".")[0] for file in files}


def _symbolic_int(torch: Any, owner: OwnThread) -> Any:
    classes = (torch.SymInt, torch.SymFloat)

    class Kind(type):
        def __call__(cls, *arguments: Any, **named: Any) -> Any:
            if len(arguments) == 1 and isinstance(arguments[0], classes) and owner.is_here:
                return torch.sym_int(arguments[0])
            if len(arguments) == 1 and isinstance(arguments[0], StepNumber):
                return truncate(arguments[0])
            return builtins.int(*arguments, **named)

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, builtins.int | LoopStep)

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, builtins.int)

        def __getattribute__(cls, name: str) -> Any:
            return getattr(builtins.int, name)

        def __eq__(cls, other: object) -> bool:
            return other is builtins.int or other is cls

        def __hash__(cls) -> builtins.int:
            return hash(builtins.int)

    return Kind("int", (), {})


def _symbolic_len(torch: Any, owner: OwnThread) -> Any:
    def length(value: Any) -> Any:
        if torch.is_tensor(value) and value.dim() and owner.is_here:
            return value.shape[0]
        return builtins.len(value)

    return length


def _symbolic_range(torch: Any, owner: OwnThread, loops: LoopTracer) -> Any:
    def steps(*arguments: Any) -> Any:
        """Return ``range`` that keeps sizes symbolic if it has the same number of steps for every length.

        A loop over all frames runs only some steps.
        """
        if owner.is_here and any(isinstance(argument, torch.SymInt) for argument in arguments):
            start, stop, step = (0, *arguments, 1) if len(arguments) == 1 else (*arguments, 1)[:3]
            hint = builtins.range(
                *(
                    argument.node.hint if isinstance(argument, torch.SymInt) else argument
                    for argument in arguments
                )
            )
            count = builtins.len(hint)
            known_true = torch.fx.experimental.symbolic_shapes.statically_known_true
            if (
                count
                and known_true(start + (count - 1) * step < stop)
                and known_true(start + count * step >= stop)
            ):
                return [start + step_index * step for step_index in builtins.range(count)]
            if isinstance(start, builtins.int) and isinstance(step, builtins.int) and start >= 0 and step > 0:
                return loops.steps_to(stop, +start, +step)
        return builtins.range(*arguments)

    return steps


def _step_numbers(owner: OwnThread, loops: LoopTracer) -> Any:
    def numbers(values: Any, start: int = 0) -> Any:
        """Enumerate as Python does, but by the steps of a loop if the values are its frames."""
        for index, value in builtins.enumerate(values, start):
            yield (loops.step_index(value, index) if owner.is_here else index), value

    return numbers


def _choice(torch: Any, owner: OwnThread, function: Any, prefers: Any) -> Any:
    """Return a function in place of ``max`` or ``min``, of sizes decided by the example."""
    is_minimum = function is builtins.min  # before the exporter replaces it

    def choose(*arguments: Any, **named: Any) -> Any:
        if len(arguments) == 2 and any(isinstance(argument, StepNumber) for argument in arguments):
            return choose_number(is_minimum, *arguments)
        sizes = any(isinstance(argument, torch.SymInt) for argument in arguments)
        if sizes and not named and len(arguments) == 2 and owner.is_here:
            return arguments[1] if prefers(*arguments) else arguments[0]
        return function(*arguments, **named)

    return choose


def _solve_if_possible(solve: Any) -> Any:
    """Return a function that leaves constraints on sizes alone if PyTorch cannot solve one.

    Sizes that are equal for multiples of 6, such as T/3 and 2 * (T/3 // 2), give one. The comparison runs the module.
    """

    def try_to_solve(self: Any) -> None:
        with contextlib.suppress(NotImplementedError):
            solve(self)

    return try_to_solve


def _give_itself(size: Any) -> Any:
    return size


def _exact_division(torch: Any, owner: OwnThread, divide: Any) -> Any:
    """Return a function in place of ``divide``, which keeps the quotient of two sizes exact."""

    class Quotient(torch.SymFloat):
        """An exact quotient of integers with a positive denominator; elsewhere it acts as a float."""

        def __init__(self, upper: Any, lower: int) -> None:
            super().__init__(divide(upper, lower).node)
            self.upper, self.lower = upper, lower

        def __add__(self, other: Any) -> Any:
            if isinstance(other, integer_classes):
                return quotient(self.upper + other * self.lower, self.lower)
            if isinstance(other, Quotient):
                return quotient(self.upper * other.lower + other.upper * self.lower, self.lower * other.lower)
            return super().__add__(other)

        __radd__ = __add__

        def __neg__(self) -> Any:
            return quotient(-self.upper, self.lower)

        def __sub__(self, other: Any) -> Any:
            return self + -other

        def __rsub__(self, other: Any) -> Any:
            return -self + other

        def __mul__(self, other: Any) -> Any:
            if isinstance(other, integer_classes):
                return quotient(self.upper * other, self.lower)
            return super().__mul__(other)

        __rmul__ = __mul__

        def __truediv__(self, other: Any) -> Any:
            if isinstance(other, int) and other > 0:
                return quotient(self.upper, self.lower * +other)
            return super().__truediv__(other)

        def __floor__(self) -> Any:
            return self.upper // self.lower

        def __ceil__(self) -> Any:
            return (self.upper + self.lower - 1) // self.lower

        def __trunc__(self) -> Any:
            return self.__floor__() if self.upper >= 0 else self.__ceil__()

    integer_classes = (int, torch.SymInt)

    def quotient(upper: Any, lower: int) -> Any:
        return Quotient(upper, lower) if isinstance(upper, torch.SymInt) else upper / lower

    def division(size: Any, other: Any) -> Any:
        if isinstance(other, int) and not isinstance(other, bool) and other > 0 and owner.is_here:
            return quotient(size, +other)
        return divide(size, other)

    return division
