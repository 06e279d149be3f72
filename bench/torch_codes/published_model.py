"""A published model: how its module is built, and the example it is exported with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.torch_codes.author_run import AuthorStream
from pulse import Chunking

CODES: dict[str, "Code"] = {}
"""By name, in the order of the table."""


@dataclass(frozen=True)
class Subject:
    """The arguments of ``from_torch``.

    module     with random weights
    example    of its input
    pulse      frames of a step; the smallest by default
    rate_hz    frames of the input in a second, for the real-time factor
    change     what is not as its author wrote it; empty if nothing is
    options    of ``from_torch``, such as method
    twin       the author's own streaming, if the package has one
    max_context  frames that attention to all frames before may need
    outputs    the places of those that are streamed; all by default
    chunking   of a module that takes one chunk in each call; it needs a twin
    """

    module: Any
    example: Any
    rate_hz: float
    pulse: int | None = None
    change: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    twin: AuthorStream | None = None
    max_context: int | None = None
    outputs: Sequence[int] | None = None
    chunking: Chunking | None = None


@dataclass(frozen=True)
class Code:
    """One row of the table."""

    name: str
    packages: tuple[str, ...]
    make: Callable[[], Subject]


def code(name: str, *packages: str) -> Callable[[Callable[[], Subject]], Callable[[], Subject]]:
    """Add a row: ``packages`` are those of PyPI that have it."""

    def add_code(make: Callable[[], Subject]) -> Callable[[], Subject]:
        CODES[name] = Code(name, packages, make)
        return make

    return add_code
