"""The arguments of a module: examples and dynamic axes by the names of forward's parameters."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from pulse.errors import InputError
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.wording import choose_wording, count_of
from pulse.torch.lengths import Lengths, split_multiple

AxisNames: TypeAlias = Mapping[int, str]
Dynamic: TypeAlias = Mapping[Any, AxisNames]
"""Dynamic axes by the name of an input, or its position."""

_SYMBOL = re.compile(r"([1-9][0-9]*\*)?[^\W\d]\w*")


@record
class ModuleCall:
    """The example of each parameter of the module's forward, by name, and its dynamic axes."""

    arguments: dict[str, Any]
    axes: dict[str, AxisNames]
    positional: bool

    def leaves(self, torch: Any) -> dict[str, Any]:
        """Return the tensors and numbers of the arguments, by the exporter's names: ``state_0``."""
        entries, _ = torch.utils._pytree.tree_flatten_with_path(self.arguments)
        return dict(zip(name_paths([path for path, _ in entries]), (leaf for _, leaf in entries)))

    def tensors_of(self, torch: Any, parameter: str) -> dict[str, Any]:
        """Return the tensors of one parameter, by the names of ``leaves``."""
        entries, _ = torch.utils._pytree.tree_flatten_with_path(self.arguments)
        return {
            name: leaf
            for name, (path, leaf) in zip(self.leaves(torch), entries)
            if path_key(path[0]) == parameter and torch.is_tensor(leaf)
        }

    def fill(self, torch: Any, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and named arguments, with the leaves replaced by these values and other tensors copied."""
        leaves = self.leaves(torch)
        _, structure = torch.utils._pytree.tree_flatten(self.arguments)
        filled = [
            values[name] if name in values else leaf.detach().clone() if torch.is_tensor(leaf) else leaf
            for name, leaf in leaves.items()
        ]
        arguments = torch.utils._pytree.tree_unflatten(filled, structure)
        return (tuple(arguments.values()), {}) if self.positional else ((), arguments)

    def in_type(self, torch: Any, dtype: Any) -> "ModuleCall":
        """Return the call with all float tensors in one dtype."""

        def convert(leaf: Any) -> Any:
            return leaf.to(dtype) if torch.is_tensor(leaf) and leaf.is_floating_point() else leaf

        return replace(self, arguments=torch.utils._pytree.tree_map(convert, self.arguments))

    @property
    def frames(self) -> Lengths:
        """The number of frames of each symbol in the example."""
        return {
            symbol: int(self.arguments[name].shape[axis])
            for name, axes in self.axes.items()
            for axis, symbol in axes.items()
        }

    def list_axes(self) -> str:
        """Return the dynamic axes, as text for messages."""
        return "; ".join(
            f"axis {axis} of {name} ({symbol})"
            for name, axes in self.axes.items()
            for axis, symbol in axes.items()
        )


def read_call(torch: Any, module: Any, title: str, example: Any, dynamic: Dynamic) -> ModuleCall:
    """Return examples and dynamic axes by the names of forward's parameters.

    Raises InputError: the module cannot be exported, or the example does not fit forward
    """
    if any(map(torch.nn.parameter.is_lazy, [*module.parameters(), *module.buffers()])):
        raise InputError(
            f"{title} has lazy layers whose parameters are not initialised yet; run it once on the example, "
            "and load its weights"
        )
    if isinstance(module, torch.jit.ScriptModule):
        raise InputError(
            f"{title} is a TorchScript program, which PyTorch's exporter does not take; pass the module that it was "
            f"made from, or {choose_wording('load an ONNX file of it with pulse.load', 'give an ONNX file of it')}"
        )
    parameters = list(inspect.signature(module.forward).parameters.values())
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        raise InputError(
            f"{title}: forward takes *{parameters[0].name}; wrap it in a module whose "
            "forward names its inputs"
        )
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    positional = not isinstance(example, Mapping)
    if positional:
        values: Sequence[Any] = (
            cast("Sequence[Any]", example) if isinstance(example, tuple | list) else (example,)
        )
        if len(values) > len(names):
            raise InputError(f"{len(values)} examples for the inputs {', '.join(names) or 'none'} of forward")
        arguments = dict(zip(names, values))
    else:
        named = dict(cast("Mapping[str, Any]", example))
        for name in named:
            require_name("input", name, names, InputError, "forward")
        arguments = {name: named[name] for name in names if name in named}
    axes: dict[str, AxisNames] = {_input_name(key, arguments): value for key, value in dynamic.items()}
    for name, symbols in axes.items():
        _require_axes(torch, name, arguments[name], symbols)
    _require_one_length(arguments, axes)
    return ModuleCall(arguments, axes, positional)


def _require_axes(torch: Any, name: str, value: Any, symbols: AxisNames) -> None:
    if not isinstance(value, torch.Tensor):
        raise InputError(
            f"input {name} has dynamic axes, and its example is not a tensor: {type(value).__name__}"
        )
    if not isinstance(cast("Any", symbols), Mapping):
        raise InputError(
            f'dynamic of {name}: {symbols!r} names no symbols; give axis and name, as in {{"{name}": {{0: "T"}}}}'
        )
    for axis, symbol in symbols.items():
        if not isinstance(cast("Any", symbol), str) or not _SYMBOL.fullmatch(symbol):
            raise InputError(
                f"dynamic of {name}, axis {axis}: {symbol!r} is not a name; give one such as 'T', or a multiple of "
                "one such as '32*T'"
            )
        if not 0 <= axis < value.dim():
            raise InputError(
                f"input {name} has {count_of(value.dim(), 'axis', 'axes')}, so none is {axis}; count from 0"
            )
        if value.shape[axis] < 2:
            raise InputError(
                f"input {name}, axis {axis}: the example has {count_of(value.shape[axis], 'frame')}, and PyTorch "
                "treats "
                "a length of 0 or 1 as a constant; give an example of more frames"
            )


def _require_one_length(arguments: Mapping[str, Any], axes: Mapping[str, AxisNames]) -> None:
    """Raise InputError unless each symbol has one length, and its multiples have multiples of it."""
    sizes = [
        (name, *split_multiple(symbol), int(arguments[name].shape[axis]))
        for name, symbols in axes.items()
        for axis, symbol in symbols.items()
    ]
    first: dict[str, tuple[str, int]] = {}
    for name, factor, symbol, frames in sorted(sizes, key=lambda size: size[1] > 1):
        if symbol not in first and frames % factor:
            raise InputError(
                f"{factor}*{symbol} is {frames} frames in the example of {name}, which is no multiple of {factor}; "
                "give a longer or a shorter example"
            )
        other, count = first.setdefault(symbol, (name, frames // factor))
        if frames != factor * count:
            ways_out = "two names for the axes" + (
                "" if factor > 1 or frames % count else f", or the multiple '{frames // count}*{symbol}'"
            )
            raise InputError(
                f"{symbol} is {count_of(count, 'frame')} in the example of {other} and {frames} in the example of "
                f"{name}"
                f"{f', which is {factor}*{symbol}' if factor > 1 else ''}; give examples of one length, or {ways_out}"
            )


def _input_name(key: str | int, arguments: Mapping[str, Any]) -> str:
    names = list(arguments)
    if isinstance(key, int) and 0 <= key < len(names):
        return names[key]
    return require_name("input", str(key), arguments, InputError, "dynamic")


def tensor_leaves(torch: Any, value: Any) -> list[Any]:
    """Return the tensors in nested lists, tuples and dictionaries."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if torch.is_tensor(leaf)]


def name_paths(paths: Sequence[Sequence[Any]]) -> list[str]:
    """Return one name for each path: its steps, joined by "_", and a number if another path has this name.

    Paths of one step keep their names.
    """
    names: dict[str, int] = {}
    for index in sorted(range(len(paths)), key=lambda index: len(paths[index]) > 1):
        joined = name = "_".join(map(path_key, paths[index]))
        number = 2
        while name in names:
            name, number = f"{joined}_{number}", number + 1
        names[name] = index
    return sorted(names, key=names.__getitem__)


def path_key(entry: Any) -> str:
    """Return one step of the path to a leaf: a dict's key, an index of a sequence, a field's name."""
    for attribute in ("key", "idx", "name"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)
