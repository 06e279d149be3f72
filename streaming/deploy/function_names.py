"""The names of the functions of a library."""

import re

from pulse.errors import InputError
from pulse.support.wording import spell


def identifier(title: str) -> str:
    """Return the name of a model as an identifier of C, in lowercase."""
    name = re.sub(r"\W+|_+", "_", title.lower(), flags=re.ASCII).strip("_")
    return name if re.match("[a-z]", name) else f"model_{name}".rstrip("_")


def require_identifier(name: str) -> str:
    """Return the user's name for a library. Raises InputError: C does not take it."""
    if re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name):
        return name
    raise InputError(
        f"{spell('name', name)}: not a C identifier; use letters, digits and _, starting with a letter"
    )
