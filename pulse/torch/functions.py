# pyright: basic
"""Replacements of PyTorch's functions that its exporter writes wrongly, or not at all."""

from typing import Any

from pulse.torch.complex_numbers import complex_result
from pulse.torch.conditions import KnownConditions
from pulse.torch.distances import pairwise_distances
from pulse.torch.interpolation import interpolate_linearly
from pulse.torch.inverse_transform import inverse_transform
from pulse.torch.loops import Loops
from pulse.torch.running_results import RUNNING, running_result


def replace_functions(torch: Any, module: Any, loops: Loops) -> Any:
    """A context in which functions that the exporter writes wrongly, or not at all, are composed of others.

    Its ``trims`` says whether a slice left out frames at the end whose number depends on the length. Authors treat 0
    frames as a separate case, and the export has only the example's case; to the model, 0 is a number like any other.
    The numbers of a range of numbers, which an exporter takes for data, are known (``tolist``).
    """

    class Replace(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.trims = False
            self._conditions = KnownConditions(torch, module)

        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            named = kwargs or {}
            name = getattr(function, "__name__", "")
            if name == "arange":
                args, named = _whole_steps(torch, args, named)
            if name == "arange" and not named and all(type(each) is int for each in args):
                result = function(*args)
                result.tolist = lambda: list(range(*args))
                return result
            known = self._conditions.convert(name, args)
            if known is not None:
                return known
            if name == "contiguous" and len(args) == 1 and not args[0].is_contiguous():
                # a copy in any case; the exporter may take it for the same tensor, and then its strides do not fit
                function, named = torch.clone, {"memory_format": torch.contiguous_format}
            if name == "slice" and _trims(torch, args):
                self.trims = True
                args = _from_front(args)
            result = loops.result(name, function, args, named)
            if result is not None:
                return result
            result = self._running_result(name, args, named)
            if result is None:
                result = _replacement(torch, function, args, named)
            if result is None:
                result = function(*args, **named)
            loops.note(args, named, result)
            return result

        def _running_result(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            """A running result; its loop is seen by this context. None for other calls."""
            if name not in RUNNING or not args or named.keys() - {"dim", "dtype"}:
                return None
            with self:
                return running_result(torch, loops, name, *args, **named)

    return Replace()


def _trims(torch: Any, args: tuple[Any, ...]) -> bool:
    """Whether a slice (tensor, axis, start, end, step) ends at a size that is negative in the example."""
    end = args[3] if len(args) > 3 else None
    if end is None or not isinstance(end, torch.SymInt):
        return False
    return end.node.hint is not None and end.node.hint < 0


def _whole_steps(
    torch: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``arange(0.0, size)`` as integers and a type: the exporter writes a range of integers for it."""
    floats = [each for each in args if isinstance(each, float)]
    sizes = any(isinstance(each, torch.SymInt) for each in args)
    if not floats or not sizes or not all(each.is_integer() for each in floats):
        return args, named
    whole = tuple(int(each) if isinstance(each, float) else each for each in args)
    return whole, {"dtype": torch.get_default_dtype(), **named}


def _from_front(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The slice with its end counted from the front."""
    x, axis, start, end, *rest = args
    return (x, axis, start, x.shape[axis] + end, *rest)


def _replacement(torch: Any, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The replacement of a result; None if there is none."""
    match getattr(function, "__name__", ""):
        case "istft":
            return inverse_transform(torch, *args, **named)
        case "interpolate":
            return interpolate_linearly(torch, args, named)
        case "cdist":
            return pairwise_distances(torch, *args, **named)
        case _:
            return complex_result(torch, function, args, named)
