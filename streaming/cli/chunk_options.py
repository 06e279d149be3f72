"""Parse the options with a value for each name: of inputs, of reading, and of models of chunks."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pulse.chunks.chunking import Chunking
from pulse.errors import InputError
from streaming.audio.frame_files import read_arrays
from streaming.cli.options import ModelOptions

V = TypeVar("V")


def parse_pairs(option: str, texts: Sequence[str] | None, value_text: str, example: str) -> dict[str, str]:
    """Parse ``["x=1,80,T"]`` to a mapping. Raises InputError: a text is not NAME=VALUE, or a name is given twice."""
    values: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"{option} {text!r}: give a name and {value_text}, such as {example}")
        if name in values:
            raise InputError(f"{option} {text!r}: {name} is given twice")
        values[name] = value
    return values


def parse_inputs(options: ModelOptions) -> dict[str, str]:
    """Return the shapes of inputs. Raises InputError as ``parse_pairs``."""
    return parse_pairs("--input", options.inputs, "a shape", "x=1,80,T,f32")


def parse_constants(options: ModelOptions) -> Mapping[str, Any]:
    """Return the values of inputs that always have one.

    Raises InputError: a value cannot be read, or as ``parse_pairs``
    """
    return _read_pairs(
        "--constant", options.constant, "a number, a list or a .npy file", "sr=16000", _parse_value
    )


def parse_budget(options: ModelOptions) -> Mapping[str, float]:
    """Return the limits of reading a file that differ from the defaults.

    Raises InputError: a limit is not a number, or as ``parse_pairs``
    """
    return _read_pairs("--budget", options.budget, "a number", "nodes=1000000", float)


def parse_chunking(options: ModelOptions) -> Chunking:
    """Return the options that describe a model of chunks.

    Raises InputError: a value cannot be read, or as ``parse_pairs``
    """
    return Chunking(
        _states(options.state),
        _read_pairs("--context", options.context, "a number of frames, 0 or more", "input=64", _parse_number),
        _read_pairs("--axis", options.axis, "an axis, counted from 0", "x=1", _parse_number),
        _read_pairs("--delay", options.delay, "a number of frames, 0 or more", "y=256", _parse_number),
        _read_pairs(
            "--initial", options.initial, "a number, a list or a .npy file", "h=h0.npy", _parse_value
        ),
        options.pulse,
    )


def _states(texts: Sequence[str] | None) -> dict[str, str] | None:
    if not texts:
        return None
    return parse_pairs("--state", [] if texts == ["none"] else texts, "an output", "h=hn, or none alone")


def _read_pairs(
    option: str, texts: Sequence[str] | None, value_text: str, example: str, parse: Callable[[str], V]
) -> Mapping[str, V]:
    values: dict[str, V] = {}
    for name, text in parse_pairs(option, texts, value_text, example).items():
        try:
            values[name] = parse(text)
        except ValueError:
            raise InputError(
                f"{option} {name}={text}: cannot be read as {value_text}; give it as in {example}"
            ) from None
    return values


def _parse_number(text: str) -> int:
    frames = int(text)
    if frames < 0:
        raise ValueError(text)
    return frames


def _parse_value(text: str) -> Any:
    """Parse a JSON number or list, or load the array of a .npy file."""
    path = Path(text)
    if path.suffix.lower() == ".npy":
        return read_arrays(path, [text])[text]
    text = text.replace("True", "true").replace("False", "false")  # as Python writes them
    return json.loads(text if text.startswith("[") or "," not in text else f"[{text}]")
