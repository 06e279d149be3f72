"""A PyTorch module in place of a model file: its name, its example, and its conversion."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pulse.errors import InputError
from pulse.support.record import record
from pulse.support.wording import spell
from streaming.opening.module_import import ModuleName, import_named, user_code

if TYPE_CHECKING:
    from pulse.loading.loaded_model import LoadedModel

KEYWORDS = ("dynamic", "opset", "compare", "lengths", "method", "states")
"""The arguments of ``pulse.from_torch`` that a function may return with a module and its example."""


@record
class NamedModule:
    """A module, its example and the arguments of ``pulse.from_torch``; without an example, None."""

    module: Any
    example: Any
    keywords: Mapping[str, Any]


def load_module(
    name: ModuleName,
    *,
    example: Any = None,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    method: str | None = None,
    **options: Any,
) -> "LoadedModel":
    """Return the model of a module, which proofs then run too.

    example, dynamic, method  as for ``pulse.from_torch``, in place of those that come with the module
    options                   arguments of ``pulse.load``
    Raises                    PulseError: there is no such module, it has no example, or it cannot be exported
    """
    from pulse.torch import import_torch
    from pulse.torch import load_module as load_torch_module

    named = _read_module(import_torch(), name, import_named(name))
    overrides = {"dynamic": dynamic, "method": method}
    keywords: dict[str, Any] = {
        **named.keywords,
        **{key: value for key, value in overrides.items() if value is not None},
    }
    if example is None:
        example = named.example
    if example is None:
        raise InputError(
            f"{name} is a module without an example of its input; give {spell('example', '1,1,4800')}, or name a "
            "function that returns (module, example)"
        )
    return load_torch_module(named.module, example, keywords, **options)


def _read_module(torch: Any, name: ModuleName, value: Any) -> NamedModule:
    """Return a module, or the result of a class or function without required arguments.

    Raises InputError: it is something else
    """
    is_function = not isinstance(value, torch.nn.Module) and callable(value)
    if is_function:
        value = _call(name, value)
    parts = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], torch.nn.Module):
        class_names = ", ".join(type(part).__name__ for part in parts)
        content = f"({class_names})" if isinstance(value, tuple) else class_names
        raise InputError(
            f"{name}: {'gives' if is_function else 'is'} {content}; it must be a torch.nn.Module, or "
            "(module, example), or (module, example, arguments of pulse.from_torch)"
        )
    module, example, keywords = (*parts, None, None)[:3]
    return NamedModule(module, example, {} if keywords is None else _check_keywords(name, keywords))


def _check_keywords(name: ModuleName, keywords: Any) -> dict[str, Any]:
    what = type(keywords).__name__
    if isinstance(keywords, dict):
        by_name = cast("dict[str, Any]", keywords)
        what = ", ".join(str(key) for key in by_name if key not in KEYWORDS)
        if not what:
            return by_name
    raise InputError(
        f"{name}: the third part must be a dict of arguments of pulse.from_torch ({', '.join(KEYWORDS)}), "
        f"not {what}"
    )


def _call(name: ModuleName, maker: Any) -> Any:
    """Return the module that a class or a function returns. Raises InputError: it needs arguments, or raises."""
    try:
        parameters = list(inspect.signature(maker).parameters.values())
    except (TypeError, ValueError):  # written in C: the call itself says what it needs
        parameters = list[inspect.Parameter]()
    variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = [
        parameter.name
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind not in variable
    ]
    if needed:
        raise InputError(
            f"{name}: needs arguments ({', '.join(needed)}); name a function without, which calls it and returns "
            "the module"
        )
    with user_code(name, "its call"):
        return maker()
