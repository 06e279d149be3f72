"""Frames of complex tensors in loops, as pairs of real numbers on a last axis."""

from collections.abc import Callable
from typing import Any, cast

from pulse.torch.replacements.loop_indices import entries_of_axes

_FUNCTIONS_OF_FRAMES = ("__getitem__", "select", "unbind", "split", "stack", "cat")
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
            dim = named.pop("dim", others[place] if len(others) > place else 0)
            dim %= tensors[0].dim() + (name == "stack")
            others, named = [*others[:place], dim], {}
        elif name == "select":
            others[0] %= first.dim()
        elif isinstance(others[0], tuple) and ... in others[0]:
            index = list(cast("tuple[Any, ...]", others[0]))
            place = index.index(...)
            whole = [slice(None)] * (first.dim() - len(entries_of_axes(index)) + 1)
            others = [(*index[:place], *whole, *index[place + 1 :])]
        result = result_of_pairs((real if is_list else real[0], *others), named)
        if result is None:
            return None

        def as_complex(pair: Any) -> Any:
            value = torch.complex(pair[..., 0], pair[..., 1])
            record([pair], {}, value)
            return value

        results = cast("tuple[Any, ...]", result) if isinstance(result, tuple) else None
        return as_complex(result) if results is None else tuple(map(as_complex, results))

    def _pairs_of(self, value: Any) -> Any:
        """Return a complex tensor as pairs: the same tensor in all steps."""
        key = id(value), value._version
        if key not in self._pairs:
            self._pairs[key] = value, self._torch.view_as_real(value)
        return self._pairs[key][1]

    def _is_complex(self, value: Any) -> bool:
        tensors = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
        return any(self._torch.is_tensor(tensor) and tensor.is_complex() for tensor in tensors)
