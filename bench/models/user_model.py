"""A user's model, with the options that ``pulse`` has for it."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_args

from typer.models import OptionInfo

from bench.models.entry import Entry
from bench.models.explicit import Explicit
from pulse.errors import InputError
from streaming.cli.chunk_options import parse_budget, parse_chunking, parse_constants, parse_inputs
from streaming.cli.model_opening import open_model
from streaming.cli.options import ModelOptions
from streaming.cli.spelling import option_names

SUFFIX = ".onnx"
"""The suffix of the files that all three runtimes read."""


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``ModelOptions``, for all models of ``--model``."""
    group = parser.add_argument_group("of the models of --model, as those of pulse")
    for field, value_type, info in _options():
        argument: dict[str, Any] = {"dest": field.name, "help": info.help, "default": field.default}
        if value_type is bool:
            argument["action"] = "store_true"
        else:
            argument |= {
                "metavar": info.metavar,
                "type": int if int in (value_type, *get_args(value_type)) else str,
            }
            if list[str] in get_args(value_type):
                argument["action"] = "append"
        group.add_argument(*option_names(field.name, info), **argument)


def _options() -> Iterator[tuple[Field[Any], Any, OptionInfo]]:
    for field in fields(ModelOptions):
        yield field, field.type, field.metadata["option"]


def user_entry(path: Path, options: Namespace) -> Entry:
    """Return the row of a file.

    Raises InputError: no ONNX file, or options that cannot be read; PulseError: the model does not stream
    """
    if path.suffix.lower() != SUFFIX:
        raise InputError(
            f"{path}: the bench compares ONNX files, which all three runtimes read; "
            "python -m bench.tflite takes .tflite, and python -m bench.sound recipes"
        )
    model_options = ModelOptions(
        **{field.name: getattr(options, field.name) for field in fields(ModelOptions)}
    )
    opened = open_model(path, model_options)
    pulsed, chunks = opened.pulsify(), opened.model.chunks
    constant_values, chunk_options = parse_constants(model_options), parse_chunking(model_options)
    arguments = {
        "inputs": parse_inputs(model_options),
        "constants": constant_values,
        "outputs": model_options.keep,
        "symbol": model_options.symbol,
        "chunking": chunk_options,
        "ignore_value_info": model_options.ignore_value_info,
        "budget": parse_budget(model_options),
    }
    return Entry(
        path.stem,
        path.stem,
        pulsed.pulse,
        lambda: path,
        chunks is None,
        None
        if chunks is None
        else lambda: Explicit.from_author(path, pulsed.pulse, chunk_options, constant_values),
        arguments,
        rate_hz=float(opened.rate_hz or Entry.rate_hz),
    )
