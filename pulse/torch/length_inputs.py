"""Inputs that hold the length of other inputs, such as the ``lengths`` of a batch."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from pulse.torch.arguments import ModuleCall
from pulse.torch.axes import InputAxes
from pulse.torch.known_numbers import KnownNumbers
from pulse.torch.lengths import MIN_LENGTH
from pulse.torch.module import wrap_module

LengthAxes: TypeAlias = dict[str, tuple[str, int]]
"""Each input that is a length -> the input and the axis that it is the length of."""


def follow_lengths(
    torch: Any, module: Any, call: ModuleCall, time_of: Callable[[Any, ModuleCall], InputAxes] | None
) -> tuple[Any, ModuleCall, LengthAxes]:
    """Return the module without inputs that are lengths, its call, and these inputs.

    time_of  finds the time axis of a module and its call, if unknown; it is added to the call
    """
    for length_axes in _find_lengths(torch, call):
        wrapper, shorter_call = with_lengths(torch, module, call, length_axes)
        if time_of is None:
            return wrapper, shorter_call, length_axes
        axes = time_of(wrapper, shorter_call)
        if all(axis in axes.get(source, {}) for source, axis in length_axes.values()):
            return wrapper, replace(shorter_call, axes=axes), length_axes
    return module, call, {}


def _find_lengths(torch: Any, call: ModuleCall) -> list[LengthAxes]:
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
    candidates = [
        (name, axis)
        for name, value in call.arguments.items()
        if torch.is_tensor(value)
        for axis in range(1, value.dim())
    ]
    groups: list[LengthAxes] = []
    for source, axis in dynamic or candidates:
        frames = call.arguments[source].shape[axis]
        sources: LengthAxes = {name: (source, axis) for name, length in lengths.items() if length == frames}
        if sources:
            groups.append(sources)
    return groups


def _is_length(torch: Any, value: Any) -> bool:
    """Return whether a value is one integer, or the same one for each entry of a batch."""
    if not torch.is_tensor(value) or value.dim() > 1 or not value.numel():
        return False
    first = value.reshape(-1)[0]
    return (
        value.dtype in (torch.int64, torch.int32)
        and int(first) >= MIN_LENGTH
        and bool((value == first).all())
    )


def with_lengths(
    torch: Any, module: Any, call: ModuleCall, length_axes: LengthAxes
) -> tuple[Any, ModuleCall]:
    """Return a module that computes these inputs itself, and its call. Outputs that are lengths are left out."""
    shapes_and_dtypes = {
        name: (call.arguments[name].shape, call.arguments[name].dtype) for name in length_axes
    }

    def forward(*positional: Any, **named: Any) -> Any:
        numbers = KnownNumbers(torch)

        def without_lengths(leaf: Any) -> Any:
            return None if numbers.number(leaf) is not None else leaf

        arguments = dict(zip(names, positional)) | named
        with numbers.watch():
            for name, (source, axis) in length_axes.items():
                shape, dtype = shapes_and_dtypes[name]
                arguments[name] = numbers.full(shape, arguments[source].shape[axis], dtype)
            result = module(**arguments)
        return torch.utils._pytree.tree_map(without_lengths, result)

    parameters = [
        parameter.replace(default=inspect.Parameter.empty, kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if name in call.arguments and name not in length_axes
    ]
    names = [parameter.name for parameter in parameters]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper = wrap_module(torch, module, forward)
    return wrapper, replace(call, arguments={name: call.arguments[name] for name in names})


def describe_lengths(length_axes: LengthAxes) -> list[str]:
    """Return the text that tells the user which inputs are lengths."""
    return [
        f"{name} is the length of {source} (axis {axis}) in the example, so the model computes it: a stream has no "
        "padding; outputs that are lengths are left out"
        for name, (source, axis) in length_axes.items()
    ]
