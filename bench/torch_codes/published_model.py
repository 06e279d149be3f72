"""Published models: how each module is built, and the example that it is exported with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bench.torch_codes.author_run import AuthorStream
from pulse import Chunking

PUBLISHED_MODELS: dict[str, "PublishedModel"] = {}
"""All of them by name, in the order of the table."""


@dataclass(frozen=True)
class ModuleCase:
    """A module, and how it is exported and streamed.

    module     the module, with random weights
    example    an example of its input
    pulse      frames of a step; the smallest by default
    rate_hz    frames of the input per second, for the real-time factor
    change     the difference from the author's code; empty if there is none
    options    further arguments of ``from_torch``, such as method
    twin       the author's own streaming, if the package has one
    max_context  frames that attention to all frames before may need
    outputs    indices of those that are streamed; all by default
    chunking   the options of a module that takes one chunk in each call; it needs a twin
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
class PublishedModel:
    """One row of the table."""

    name: str
    packages: tuple[str, ...]
    make: Callable[[], ModuleCase]


def import_torch() -> Any:
    """Return PyTorch; most of the bench runs without it."""
    return import_module("torch")


def published_model(
    name: str, *packages: str
) -> Callable[[Callable[[], ModuleCase]], Callable[[], ModuleCase]]:
    """Add a row: ``packages`` are those of PyPI that have it."""

    def add_model(make: Callable[[], ModuleCase]) -> Callable[[], ModuleCase]:
        PUBLISHED_MODELS[name] = PublishedModel(name, packages, make)
        return make

    return add_model
