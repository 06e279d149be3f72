"""The values of the codes of inputs and outputs, ``scale * (code - zero)``, as entries of the metadata."""

from collections.abc import Mapping
from typing import NamedTuple

KEY_PREFIX = "codes of "


class Codes(NamedTuple):
    """The scale of a port's codes, and the code of zero."""

    scale: float
    zero: int


def codes_entry(name: str, codes: Codes) -> tuple[str, str]:
    """Return the entry of a port: its key and its text."""
    return f"{KEY_PREFIX}{name}", f"{codes.scale!r} {codes.zero}"


def read_codes(metadata: Mapping[str, str], name: str) -> Codes | None:
    """Return the codes in the entry of a port; None if it is missing or cannot be read."""
    scale, _, zero = metadata.get(f"{KEY_PREFIX}{name}", "").partition(" ")
    try:
        return Codes(float(scale), int(zero))
    except ValueError:
        return None
