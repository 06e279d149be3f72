"""Parse the options of PyTorch modules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pulse.errors import InputError
from streaming.cli.options import ModelOptions
from streaming.opening.module_import import read_module_name

TORCH_DTYPES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "bool": "bool",
}
SEED = 0


def parse_module_options(path: Path | None, options: ModelOptions) -> dict[str, Any]:
    """Return the arguments of ``pulse.from_torch`` that are given. Raises InputError: the model is a file."""
    if path is not None and read_module_name(path) is not None:
        return {
            "example": None if options.example is None else _read_example(options.example),
            "dynamic": _read_dynamic(options.dynamic),
            "method": options.method,
        }
    for name in ("example", "dynamic", "method"):
        if getattr(options, name) is not None:
            model = "the built-in model" if path is None else path
            raise InputError(
                f"--{name} is for a PyTorch module (package.module:name or file.py:name), and {model} is not one"
            )
    return {}


def _read_example(texts: Sequence[str]) -> Any:
    """Return tensors of noise: a tuple, or a dict by name.

    Raises InputError: a text is no shape or file, or some inputs have no name of their own
    """
    from pulse.torch import import_torch

    torch = import_torch()
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
    """Return a .npy file, or noise of a shape: integers and booleans are 0 and 1.

    Raises InputError: the text is neither, or the file cannot be read
    """
    if text.lower().endswith(".npy"):
        from streaming.audio.frame_files import read_arrays

        return torch.from_numpy(read_arrays(Path(text), [text])[text])
    sizes = text.split(",")
    dtype = sizes.pop().strip() if sizes[-1].strip() in TORCH_DTYPES else "f32"
    try:
        shape = [int(size) for size in sizes]
    except ValueError:
        shape = [0]
    if min(shape, default=0) < 1:
        raise InputError(
            f"--example {text}: give sizes of 1 and more, and a type if it is not f32 ({', '.join(TORCH_DTYPES)}), "
            "such as 1,1,4800 or 1,40,i64, or a .npy file"
        )
    if dtype in ("i64", "i32", "bool"):
        return torch.randint(0, 2, shape, generator=generator).to(getattr(torch, TORCH_DTYPES[dtype]))
    return torch.randn(shape, generator=generator).to(getattr(torch, TORCH_DTYPES[dtype]))


def _read_dynamic(texts: Sequence[str] | None) -> dict[str, dict[int, str]] | None:
    """Return ``["x=2:T"]`` as ``from_torch`` takes it; T is the default.

    Raises InputError: a text has no name or no axis
    """
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
