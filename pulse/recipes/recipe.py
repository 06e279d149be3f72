"""What a recipe says, as it was written; every key known, every value of its type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RecipeStage:
    """One stage.

    number   counted from 1
    kind     ``model``, or a function of ``pulse.front``
    options  of the function its parameters; of a model ``model``, its path, and what ``pulse.Stage`` takes
    reads    the wires that it reads, in the order of its inputs or by input; None: what the stage before it gives
    gives    the names of its outputs, in their order or by output
    """

    number: int
    kind: str
    options: Mapping[str, Any]
    reads: Sequence[str] | Mapping[str, str] | None
    gives: Sequence[str] | Mapping[str, str] | None

    @property
    def place(self) -> str:
        """What errors call it."""
        return f"stage {self.number} ({self.kind})"

    @property
    def read_names(self) -> Sequence[str]:
        """The wires that it names."""
        return list(self.reads.values() if isinstance(self.reads, Mapping) else self.reads or ())

    @property
    def given_names(self) -> Sequence[str]:
        """The names that it gives."""
        return list(self.gives.values() if isinstance(self.gives, Mapping) else self.gives or ())


@dataclass(frozen=True)
class Recipe:
    """A whole recipe.

    path     of its file; what it names is beside it
    title    of the model that it makes
    rate_hz  samples a second of its sound; None where it does not say so
    outputs  the outputs to keep; None: those of the last stage
    inputs   name -> shape of the inputs that stages read by name
    """

    path: Path
    title: str
    rate_hz: int | None
    stages: Sequence[RecipeStage]
    outputs: Sequence[str] | None
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
