"""The context of an expression in a document: its names, the graph that takes nodes, the names of results."""

from collections.abc import Mapping
from dataclasses import replace

from pulse.errors import LoadError
from pulse.nnef.read.node import GraphReader, NnefValue
from pulse.support.record import record


@record(eq=False)
class Position:
    """The surroundings of an expression.

    scope    the names that are assigned so far, and their values
    graph    the graph that takes its nodes
    targets  names for its results; empty if it has none
    title    the document, for errors
    line     the line of the statement, from 1
    """

    scope: Mapping[str, NnefValue]
    graph: GraphReader
    targets: tuple[str, ...]
    title: str
    line: int

    @property
    def text(self) -> str:
        """Document and line, for errors."""
        return f"{self.title}, line {self.line}"

    def part(self, name: int | str) -> "Position":
        """Return the position of an operand or an argument, whose results are named after it."""
        targets = (f"{self.targets[0]}.{name}",) if self.targets else ()
        return replace(self, targets=targets)

    def error(self, reason: str) -> LoadError:
        """Return a LoadError that names the document and the line."""
        return LoadError(f"{self.text}: {reason}")
