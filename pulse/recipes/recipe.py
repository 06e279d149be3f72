"""A recipe as values: every key known, every value of its type."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse.errors import LoadError
from pulse.support.record import record

if TYPE_CHECKING:
    from pulse.onnx.read.file import ModelSource

ITSELF = "."
"""The model of a stage that is the file in whose metadata the recipe is."""


@record
class RecipeContext:
    """The location of a recipe.

    location   its name in errors
    path    path of its file; the default title
    folder  the folder of the files that it names; None if there is none
    itself  the model whose metadata contains it; None if it is a separate file
    """

    location: str
    path: Path
    folder: Path | None
    itself: "ModelSource | None" = None

    @classmethod
    def of(cls, path: Path) -> "RecipeContext":
        """Return the context of a recipe that is a separate file."""
        return cls(str(path), path, path.parent)

    def resolve_path(self, name: str) -> Path:
        """Return a file that the recipe names. Raises LoadError: an embedded recipe names one outside its folder."""
        if self.itself is None:
            return self.path.parent / name
        if self.folder is None:
            raise LoadError(
                f"{name}: does not exist, as this recipe is not in a file; give the path of the model"
            )
        try:
            folder = self.folder.resolve()
            path = (folder / name).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise LoadError(f"{name!r} is not a path ({error}); check it") from error
        if not path.is_relative_to(folder):
            raise LoadError(
                f"{name}: is outside {self.folder}; a recipe in a model's metadata names files in its folder only: "
                "copy it there, or write the recipe to a separate file"
            )
        return self.folder / name


@record
class RecipeStage:
    """One stage.

    number        counted from 1
    kind          ``model``, or a function of ``pulse.front``
    options       the parameters of the function; for a model ``model``, its path, and the options of ``pulse.Stage``
    reads         the wires that it reads, in the order of its inputs or by input; None: the outputs of the previous
                  stage
    output_names  the names of its outputs, in order or by output
    """

    number: int
    kind: str
    options: Mapping[str, Any]
    reads: Sequence[str] | Mapping[str, str] | None
    output_names: Sequence[str] | Mapping[str, str] | None

    @property
    def title(self) -> str:
        """The name of the stage in errors."""
        return f"stage {self.number} ({self.kind})"

    @property
    def read_names(self) -> Sequence[str]:
        """The wires that it names."""
        return list(self.reads.values() if isinstance(self.reads, Mapping) else self.reads or ())

    @property
    def given_names(self) -> Sequence[str]:
        """The names of its outputs."""
        return list(
            self.output_names.values() if isinstance(self.output_names, Mapping) else self.output_names or ()
        )


@record
class Recipe:
    """A whole recipe.

    context  its location
    title    the title of its model
    titled   whether the recipe itself has a title
    rate_hz  samples per second of its sound; None if it is not stated
    stages   its stages, in order
    outputs  the outputs to keep; None: the last stage's
    inputs   name -> shape of the inputs that stages read by name
    """

    context: RecipeContext
    title: str
    titled: bool
    rate_hz: int | None
    stages: Sequence[RecipeStage]
    outputs: Sequence[str] | None
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
