"""Load the model that a path or a name stands for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pulse.chunks.chunking import Chunking
from pulse.errors import InputError
from pulse.loading.loaded_model import LoadedModel
from pulse.program.file.container import is_program_file
from pulse.program.file.stored_program import read_program
from streaming.builtin import model_path
from streaming.opening.module_import import read_module_name
from streaming.opening.torch_module import load_module


def load_source(
    path: Path | None,
    module_options: Mapping[str, Any] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    symbol: str | None = None,
    chunking: Chunking | None = None,
    ignore_value_info: bool = False,
    **reading_options: Any,
) -> LoadedModel:
    """Load a file, or the PyTorch module that is called ``package.module:name``; None: the built-in model.

    A program is loaded without importing readers of models. Raises PulseError: it cannot be read, or it is a
    Python file, which may have several modules.

    module_options   arguments of ``load_module``, if it is a module; other arguments are those of ``pulse.load``
    reading_options  those that only a file takes which is still to be read
    """
    name = None if path is None else read_module_name(path)
    if name is not None:
        return load_module(
            name,
            outputs=outputs,
            symbol=symbol,
            chunking=chunking,
            **reading_options,
            **(module_options or {}),
        )
    if path is not None and is_program_file(path):
        return LoadedModel.of_program(
            read_program(path), chunking, outputs=outputs, symbol=symbol, **reading_options
        )
    if path is not None and path.suffix == ".py" and path.is_file():
        raise InputError(
            f"{path}: is Python code; name the module, class or function in it, as in {path}:make_model"
        )
    from pulse.api import load

    return load(
        source=path or model_path(),
        outputs=outputs,
        symbol=symbol,
        chunking=chunking,
        ignore_value_info=ignore_value_info,
        **reading_options,
    )
