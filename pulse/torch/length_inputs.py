# pyright: basic
"""Inputs that hold the length of other inputs, such as the ``lengths`` of a batch."""

import inspect
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from pulse.torch.arguments import ModuleCall
from pulse.torch.axes import Axes
from pulse.torch.lengths import LEAST_LENGTH

Places: TypeAlias = dict[str, tuple[str, int]]
"""Each input that is a length -> the input and the axis that it is the length of."""


def follow_lengths(
    torch: Any, module: Any, call: ModuleCall, time_of: Callable[[Any, ModuleCall], Axes] | None
) -> tuple[Any, ModuleCall, Places]:
    """Return the module without inputs that are lengths, its call, and these inputs.

    time_of  finds the time axis of a module and its call, if unknown; it is added to the call
    """
    for places in _find_lengths(torch, call):
        wrapper, shorter_call = with_lengths(torch, module, call, places)
        if time_of is None:
            return wrapper, shorter_call, places
        axes = time_of(wrapper, shorter_call)
        if all(axis in axes.get(source, {}) for source, axis in places.values()):
            return wrapper, replace(shorter_call, axes=axes), places
    return module, call, {}


def _find_lengths(torch: Any, call: ModuleCall) -> list[Places]:
    """Find inputs of integers that equal a length of the example, each with the axes of this length.

    They are known by name: lengths, ilens, x_len. Dynamic axes are preferred; otherwise every axis after the first is
    a candidate, and there may be several results.
    """
    lengths = {
        name: int(value.reshape(-1)[0])
        for name, value in call.arguments.items()
        if name not in call.axes and "len" in name.lower() and _is_length(torch, value)
    }
    dynamic = [(name, axis) for name, axes in call.axes.items() for axis in axes]
    every = [
        (name, axis)
        for name, value in call.arguments.items()
        if torch.is_tensor(value)
        for axis in range(1, value.dim())
    ]
    groups: list[Places] = []
    for source, axis in dynamic or every:
        frames = call.arguments[source].shape[axis]
        own: Places = {name: (source, axis) for name, length in lengths.items() if length == frames}
        if own:
            groups.append(own)
    return groups


def _is_length(torch: Any, value: Any) -> bool:
    """Whether a value is one integer, or the same one for each entry of a batch."""
    if not torch.is_tensor(value) or value.dim() > 1 or not value.numel():
        return False
    first = value.reshape(-1)[0]
    return (
        value.dtype in (torch.int64, torch.int32)
        and int(first) >= LEAST_LENGTH
        and bool((value == first).all())
    )


def with_lengths(torch: Any, module: Any, call: ModuleCall, places: Places) -> tuple[Any, ModuleCall]:
    """A module that computes these inputs itself, and its call. Outputs that are lengths are left out."""
    kinds = {name: (call.arguments[name].shape, call.arguments[name].dtype) for name in places}

    def forward(*positional: Any, **named: Any) -> Any:
        arguments = dict(zip(names, positional)) | named
        numbers = _known_numbers(torch)
        with numbers:
            for name, (source, axis) in places.items():
                shape, dtype = kinds[name]
                arguments[name] = numbers.full(shape, arguments[source].shape[axis], dtype)
            result = module(**arguments)
        return torch.utils._pytree.tree_map(
            lambda leaf: None if numbers.number(leaf) is not None else leaf, result
        )

    parameters = [
        parameter.replace(default=inspect.Parameter.empty, kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if name in call.arguments and name not in places
    ]
    names = [parameter.name for parameter in parameters]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper = torch.nn.Module()
    wrapper.module, wrapper.forward = module, forward
    wrapper.train(module.training)
    return wrapper, replace(call, arguments={name: call.arguments[name] for name in names})


def describe_lengths(places: Places) -> list[str]:
    """The text that tells the user which inputs are lengths."""
    return [
        f"{name} is the length of {source} (axis {axis}) in the example, so the model computes it: a stream has no "
        "padding; outputs that are lengths are left out"
        for name, (source, axis) in places.items()
    ]


KEPT = {
    *("clone", "contiguous", "detach", "to", "long", "int", "float", "cpu"),
    *("unsqueeze", "squeeze", "view", "reshape", "flatten", "expand", "__getitem__"),
    *("max", "min", "amax", "amin"),
}
"""Functions of a tensor of equal integers that give the same integers."""
COMPUTED: dict[str, Callable[..., Any]] = {
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


def _known_numbers(torch: Any) -> Any:
    """A context in which tensors computed from a length alone are known, and convert to a size.

    An exporter does not know what a tensor holds, and so no length that an author reads from one.
    """
    sizes = (torch.SymInt, torch.SymFloat)

    class KnownNumbers(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self._numbers: dict[int, tuple[Any, Any]] = {}

        def full(self, shape: Any, number: Any, dtype: Any) -> Any:
            return self._note(torch.full(shape, number, dtype=dtype), number)

        def number(self, value: Any) -> Any:
            """The number that all elements of a tensor equal, or None if unknown."""
            tensor, number = self._numbers.get(id(value), (None, None))
            return number if tensor is value else None

        def _note(self, tensor: Any, number: Any) -> Any:
            self._numbers[id(tensor)] = tensor, number
            return tensor

        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            named = kwargs or {}
            number = self.number(args[0]) if args else None
            name = getattr(function, "__name__", "")
            if name in ("_pack_padded_sequence", "_pad_packed_sequence"):
                result = function(*args, **named)
                self._note(result[1], self.number(args[1]))  # lengths, then batch sizes, then lengths again
                return result
            if number is None:
                return function(*args, **named)
            if name == "item" and isinstance(number, (int, *sizes)) and not args[0].is_floating_point():
                return number
            if name == "sort" and args[0].dim() == 1:
                return torch.return_types.sort(
                    (self._note(args[0].clone(), number), torch.arange(len(args[0])))
                )
            if name == "tolist" and isinstance(number, sizes):
                return [number] * args[0].numel() if args[0].dim() else number
            result = function(*args, **named)
            if torch.is_tensor(result):
                number_after = self._derive(name.strip("_"), name, number, args, named)
                if number_after is not None:
                    whole = isinstance(number_after, int | torch.SymInt) or result.is_floating_point()
                    number_after = number_after if whole else math.trunc(number_after)
                    if name not in KEPT and isinstance(number_after, torch.SymInt):
                        result = torch.full(result.shape, number_after, dtype=result.dtype)
                    self._note(result, number_after)
                elif result is args[0]:
                    del self._numbers[id(result)]  # the tensor was written to
            return result

        def _derive(
            self, plain: str, name: str, number: Any, args: tuple[Any, ...], named: dict[str, Any]
        ) -> Any:
            if name == "__getitem__":
                return number
            numbers = [self.number(each) for each in args[1:]]
            operands = [number, *(each if own is None else own for each, own in zip(args[1:], numbers))]
            if name == "clamp" and type(number) is int and set(named) <= {"min"} and len(args) == 1:
                least = named.get("min")
                return max(number, least) if type(least) is int else None
            if any(map(torch.is_tensor, operands)) or (name.endswith("_") and not name.startswith("__")):
                return None
            if name in KEPT:
                return number
            if not all(type(each) in (int, torch.SymInt) for each in operands[1:]):  # a bool is not a length
                return None
            if plain == "div" and set(named) <= {"rounding_mode"}:
                function = QUOTIENTS.get(named.get("rounding_mode"))
                return None if function is None else function(*operands)
            return COMPUTED[plain](*operands) if plain in COMPUTED and not named else None

    return KnownNumbers()
