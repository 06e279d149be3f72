"""A PyTorch module in place of a model file: its name, its example, and its conversion."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pulse.chunks.chunking import Chunking
from pulse.errors import InputError
from pulse.support.record import record
from streaming.cli.module_import import ModuleName, import_named, user_code
from streaming.cli.options import ModelOptions

if TYPE_CHECKING:
    from pulse.loading.loaded_model import LoadedModel

KEYWORDS = ("dynamic", "opset", "compare", "lengths", "method", "states")
"""The arguments of ``pulse.from_torch`` that a function may return with a module and its example."""
DTYPES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "bool": "bool",
}
SEED = 0


@record
class NamedModule:
    """A module, its example and the arguments of ``pulse.from_torch``; without an example, None."""

    module: Any
    example: Any
    keywords: Mapping[str, Any]


def load_module(
    name: ModuleName, options: ModelOptions, chunking: Chunking, reading: Mapping[str, Any]
) -> "LoadedModel":
    """Return the model of a module, which proofs then run too. Raises PulseError.

    reading  options of reading a file, of which none may be given
    """
    from pulse.loading.load import load
    from pulse.torch import convert_module, import_torch

    torch = import_torch()
    named = _read_module(torch, name, import_named(name))
    from_options = {"dynamic": _read_dynamic(options.dynamic), "method": options.method}
    keywords: dict[str, Any] = {
        **named.keywords,
        **{key: value for key, value in from_options.items() if value is not None},
    }
    example = named.example if options.example is None else _read_example(torch, options.example)
    if example is None:
        raise InputError(
            f"{name}: is a module without an example of its input; give --example 1,1,4800, or name a function that "
            "returns (module, example)"
        )
    model, original = convert_module(named.module, example, **keywords)
    loaded = load(model, outputs=options.keep, symbol=options.symbol, chunking=chunking, **reading)
    return replace(loaded, original=original)


def refuse_module_options(options: ModelOptions, path: Path | None) -> None:
    """Raise InputError for an option of PyTorch modules if the model is a file."""
    for option, value in (
        ("--example", options.example),
        ("--dynamic", options.dynamic),
        ("--method", options.method),
    ):
        if value is not None:
            model = "the built-in model" if path is None else path
            raise InputError(
                f"{option} is for a PyTorch module (package.module:name or file.py:name), and {model} is not one"
            )


def _read_module(torch: Any, name: ModuleName, value: Any) -> NamedModule:
    """Return a module, or the result of a class or function without required arguments. Raises InputError."""
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


def _read_example(torch: Any, texts: Sequence[str]) -> Any:
    """Return tensors of noise: a tuple, or a dict by name. Raises InputError."""
    pairs = [text.rpartition("=")[::2] for text in texts]
    names = [name.strip() for name, _ in pairs]
    generator = torch.Generator().manual_seed(SEED)
    values = [_read_tensor(torch, text.strip(), generator) for _, text in pairs]
    if not any(names):
        return tuple(values)
    if not all(names) or len(set(names)) < len(names):
        raise InputError(f"--example {', '.join(texts)}: give each input its own name, or none of them")
    return dict(zip(names, values))


def _read_tensor(torch: Any, text: str, generator: Any) -> Any:
    """Return a .npy file, or noise of a shape: integers and booleans are 0 and 1. Raises InputError."""
    if text.lower().endswith(".npy"):
        from streaming.audio.frame_files import read_arrays

        return torch.from_numpy(read_arrays(Path(text), [text])[text])
    sizes = text.split(",")
    dtype = sizes.pop().strip() if sizes[-1].strip() in DTYPES else "f32"
    try:
        shape = [int(size) for size in sizes]
    except ValueError:
        shape = [0]
    if min(shape, default=0) < 1:
        raise InputError(
            f"--example {text}: give sizes of 1 and more, and a type if it is not f32 ({', '.join(DTYPES)}), such as "
            "1,1,4800 or 1,40,i64, or a .npy file"
        )
    if dtype in ("i64", "i32", "bool"):
        return torch.randint(0, 2, shape, generator=generator).to(getattr(torch, DTYPES[dtype]))
    return torch.randn(shape, generator=generator).to(getattr(torch, DTYPES[dtype]))


def _read_dynamic(texts: Sequence[str] | None) -> dict[str, dict[int, str]] | None:
    """Return ``["x=2:T"]`` as ``from_torch`` takes it; T is the default. Raises InputError."""
    if texts is None or list(texts) == ["none"]:
        return None if texts is None else {}
    axes: dict[str, dict[int, str]] = {}
    for text in texts:
        name, _, axis_text = text.partition("=")
        axis, _, symbol = axis_text.partition(":")
        if not (name.strip() and axis.strip().lstrip("-").isdigit()):
            raise InputError(f"--dynamic {text!r}: give a name and an axis, such as x=2 or x=2:T, or none")
        axes.setdefault(name.strip(), {})[int(axis)] = symbol.strip() or "T"
    return axes
