"""Metadata of exported files about their stream, in ``metadata_props``.

pulse_format       1
pulse_symbol       the name of the symbol, such as T
pulse_frames       frames of the symbol in each pulse
pulse_inputs       JSON list of {name, axis, delay, rate, length}; axis null: given once, with every call
pulse_outputs      the same; axis null or rate 0: known when the stream has ended. ``port`` is the model's own name
                   of it, if that is taken in the file
pulse_states       JSON list of {input, output, initial}: the value of the input is that of the output in the previous
                   pulse; ``initial`` is an .npy file in base64, left out if it is zeros
pulse_end          the input, i64 scalar, that is fed with the frames of the symbol in the whole stream, and as long as
                   the stream has not ended with 1 << 45; left out if the model does not ask
pulse_awaits       JSON list of {frames, offset, length}: pulses continue until ``offset + length`` frames, that many in
                   each pulse, have been run
pulse_assumptions  JSON list of conditions on the symbol, such as ``T >= 3``
sample_rate        frames of the symbol a second, if that is known
title              the name of the model, if a recipe sets one
codes of NAME      ``scale zero``: an input or output of codes, whose values are ``scale * (code - zero)``

Lengths are integer arithmetic on the symbol: + - * min max, and / that rounds down.

A file that was not exported may hold a recipe as ``pulse_recipe``: see ``pulse.recipes.embedded``.
"""

import base64
import binascii
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, cast

import numpy as np

from pulse.errors import LoadError
from pulse.facts import Array
from pulse.support.record import record

FORMAT = "1"
RECIPE = "pulse_recipe"
"""The entry with the recipe of a file."""
TITLE = "title"
RATE_KEY = "sample_rate"
CODES_PREFIX = "codes of "


def stated_rate_hz(metadata: Mapping[str, str]) -> int | None:
    """Return how many frames of its symbol a model has each second; None if it states no positive integer."""
    text = metadata.get(RATE_KEY, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


class Codes(NamedTuple):
    """The scale of a port's codes, and the code of zero."""

    scale: float
    zero: int


def codes_entry(name: str, codes: Codes) -> tuple[str, str]:
    """Return the entry of a port: its key and its text."""
    return f"{CODES_PREFIX}{name}", f"{codes.scale!r} {codes.zero}"


def read_codes(metadata: Mapping[str, str], name: str) -> Codes | None:
    """Return the codes in the entry of a port; None if it is missing or cannot be read."""
    scale, _, zero = metadata.get(f"{CODES_PREFIX}{name}", "").partition(" ")
    try:
        return Codes(float(scale), int(zero))
    except ValueError:
        return None


@record
class PortMetadata:
    """The metadata of an input or output.

    name    its name in the file
    axis    the stream axis; None if it is given once, with every call, or known at the end
    delay   leading frames that are not part of the result
    rate    frames for each frame of the symbol, as a fraction
    length  its frames in the whole stream, an expression of the symbol
    port    the model's own name of it; empty if that is ``name``
    """

    name: str
    axis: int | None
    delay: int
    rate: str
    length: str
    port: str = ""


@record
class AwaitedMetadata:
    """A wire whose last frame some output waits for."""

    frames: int
    offset: int
    length: str


@record
class StateMetadata:
    """A pair that carries state; ``initial`` is an .npy file in base64, empty if it is zeros."""

    input: str
    output: str
    initial: str = ""

    @classmethod
    def of(cls, read: str, write: str, initial: Array) -> "StateMetadata":
        """Return the metadata of a state with this initial value."""
        if not initial.any() and not np.signbit(initial.astype(np.float64)).any():
            return cls(read, write)
        file = io.BytesIO()
        np.save(file, initial, allow_pickle=False)
        return cls(read, write, base64.b64encode(file.getvalue()).decode("ascii"))

    def value(self) -> Array | None:
        """Return the initial value; None if it is zeros. Raises LoadError: it cannot be decoded."""
        if not self.initial:
            return None
        try:
            return cast(
                Array, np.load(io.BytesIO(base64.b64decode(self.initial, validate=True)), allow_pickle=False)
            )
        except (ValueError, EOFError, binascii.Error) as error:
            raise LoadError(
                f"the initial value of {self.input} cannot be read ({error}); export it again"
            ) from error


@record
class StreamMetadata:
    """The metadata of an exported file about its stream.

    symbol       name of the frames of the stream
    pulse        frames of the symbol in each pulse
    inputs       the streaming inputs and those given once
    outputs      the outputs
    states       the inputs that are fed with outputs of the previous pulse
    end          the input that has the number of frames once the stream has ended; None if there is none
    awaits       the wires whose last frame some output waits for
    assumptions  conditions on the symbol
    """

    symbol: str
    pulse: int
    inputs: tuple[PortMetadata, ...]
    outputs: tuple[PortMetadata, ...]
    states: tuple[StateMetadata, ...]
    end: str | None
    awaits: tuple[AwaitedMetadata, ...]
    assumptions: tuple[str, ...]

    def dump(self) -> dict[str, str]:
        """Return the metadata as entries of a file."""
        entries = {
            "pulse_format": FORMAT,
            "pulse_symbol": self.symbol,
            "pulse_frames": str(self.pulse),
            "pulse_inputs": json.dumps([_without_blanks(port) for port in self.inputs]),
            "pulse_outputs": json.dumps([_without_blanks(port) for port in self.outputs]),
            "pulse_states": json.dumps([_without_blanks(state) for state in self.states]),
            "pulse_awaits": json.dumps([asdict(awaited) for awaited in self.awaits]),
            "pulse_assumptions": json.dumps(self.assumptions),
        }
        return entries if self.end is None else {**entries, "pulse_end": self.end}

    @classmethod
    def parse(cls, entries: Mapping[str, str]) -> "StreamMetadata | None":
        """Return the metadata in a file's entries; None if it is not an exported file.

        Raises LoadError: they have another format, or cannot be read
        """
        format_text = entries.get("pulse_format")
        if format_text is None:
            return None
        if format_text != FORMAT:
            raise LoadError(
                f"the file has a pulsed model of format {format_text}, and this version reads "
                f"format {FORMAT}; export it again"
            )
        try:
            return cls(
                symbol=entries["pulse_symbol"],
                pulse=int(entries["pulse_frames"]),
                inputs=tuple(PortMetadata(**entry) for entry in _list(entries, "pulse_inputs")),
                outputs=tuple(PortMetadata(**entry) for entry in _list(entries, "pulse_outputs")),
                states=tuple(StateMetadata(**entry) for entry in _list(entries, "pulse_states")),
                end=entries.get("pulse_end"),
                awaits=tuple(AwaitedMetadata(**entry) for entry in _list(entries, "pulse_awaits")),
                assumptions=tuple(str(text) for text in _list(entries, "pulse_assumptions")),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LoadError(
                f"the metadata of the stream cannot be read ({error!r}); export it again"
            ) from error


def _without_blanks(entry: PortMetadata | StateMetadata) -> dict[str, Any]:
    return {key: value for key, value in asdict(entry).items() if value != ""}


def is_exported(entries: Mapping[str, str]) -> bool:
    """Return whether a file is a pulsed model, by its metadata."""
    return "pulse_format" in entries


def _list(entries: Mapping[str, str], key: str) -> Sequence[Any]:
    values: object = json.loads(entries[key])
    if not isinstance(values, list):
        raise ValueError(f"{key} is not a list")
    return cast("list[Any]", values)
