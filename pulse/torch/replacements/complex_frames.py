"""Frames of complex tensors in loops, as pairs of real numbers on a last axis."""

from collections.abc import Callable
from typing import Any, cast

from pulse.torch.replacements.loop_indices import entries_of_axes

_FUNCTIONS_OF_FRAMES = ("__getitem__", "__setitem__", "select", "unbind", "split", "stack", "cat")
_PLACES_OF_AXES = {"unbind": 0, "stack": 0, "cat": 0, "split": 1}


class ComplexFrames:
    """The complex tensors of an export whose frames loops take or join."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._pairs: dict[tuple[int, int], tuple[Any, Any]] = {}  # by id and version

    def concerns(self, name: str, args: tuple[Any, ...]) -> bool:
        """Return whether a function selects or joins frames of complex tensors."""
        return bool(args) and name in _FUNCTIONS_OF_FRAMES and self._is_complex(args[0])

    def result(
        self,
        result_of_pairs: Callable[..., Any],
        record: Callable[..., None],
        name: str,
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Return the result for tensors of pairs as complex tensors; None if it is not of a loop.

        result_of_pairs  returns the result of the function for arguments of real numbers
        record           marks a result with the steps of its arguments
        """
        first, *others = args
        torch, is_list = self._torch, isinstance(first, list | tuple)
        tensors = [tensor.to(torch.complex64) for tensor in first] if is_list else [first]
        real = [self._pairs_of(tensor) for tensor in tensors]
        for pair, tensor in zip(real, tensors):
            record([tensor], {}, pair)
        if name in _PLACES_OF_AXES:
            place = _PLACES_OF_AXES[name]
            dim = named.get("dim", others[place] if len(others) > place else 0)
            dim %= tensors[0].dim() + (name == "stack")
            others, named = [*others[:place], dim], {}
        elif name == "select":
            others[0] %= first.dim()
        else:
            others[0] = self._without_ellipsis(first, others[0])
        if name == "__setitem__" and torch.is_tensor(others[1]):
            value = others[1]
            value = value if value.is_complex() else torch.complex(value, torch.zeros_like(value))
            record([others[1]], {}, value)
            others[1] = torch.view_as_real(value)
            record([value], {}, others[1])
        result = result_of_pairs((real if is_list else real[0], *others), named)
        if result is None or name == "__setitem__":
            return result

        def as_complex(pair: Any) -> Any:
            value = torch.complex(pair[..., 0], pair[..., 1])
            record([pair], {}, value)
            return value

        results = cast("tuple[Any, ...]", result) if isinstance(result, tuple) else None
        return as_complex(result) if results is None else tuple(map(as_complex, results))

    def _without_ellipsis(self, x: Any, index: Any) -> tuple[Any, ...]:
        """Return an index with whole axes in place of its ellipsis: the pairs have one axis more."""
        entries = cast("tuple[Any, ...]", index if isinstance(index, tuple) else (index,))
        places = [place for place, entry in enumerate(entries) if entry is ...]
        if not places:
            return entries
        whole: list[Any] = [slice(None)] * (x.dim() - len(entries_of_axes(entries)) + 1)
        return (*entries[: places[0]], *whole, *entries[places[0] + 1 :])

    def _pairs_of(self, value: Any) -> Any:
        """Return a complex tensor as pairs: the same tensor in all steps."""
        key = id(value), value._version
        if key not in self._pairs:
            self._pairs[key] = value, self._torch.view_as_real(value)
        return self._pairs[key][1]

    def _is_complex(self, value: Any) -> bool:
        tensors = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
        return any(self._torch.is_tensor(tensor) and tensor.is_complex() for tensor in tensors)
