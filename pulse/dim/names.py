"""Names of symbols in expressions."""

import re

RESERVED = ("min", "max", "broadcast")
"""The functions of expressions."""
SYMBOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def quote(name: str) -> str:
    """Return the name as written in an expression: backquoted if it is not a plain identifier."""
    return name if SYMBOL_NAME.fullmatch(name) and name not in RESERVED else f"`{name}`"
