"""Operators that users declare: what is known of them before a graph is read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Declared:
    """An operator that a user declared.

    output_names   as the graph of a function names them
    """

    name: str
    output_names: tuple[str, ...]


OWN: dict[str, Declared] = {}
"""Name -> operator, of all that were declared."""
