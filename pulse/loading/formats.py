"""The formats of models, each one row: how it is recognised, and how it is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse.chunks.chunking import NOTHING, Chunking
from pulse.errors import LoadError
from pulse.loading.loaded import Loaded
from pulse.models import Model, TypedModel
from pulse.onnx.read.likeness import RECIPE
from pulse.wording import spelled

if TYPE_CHECKING:
    from onnx import ModelProto

    from pulse.onnx.read.file import ModelSource

HEAD = 4096
"""Bytes by which formats are told apart."""
RECIPE_SUFFIX = ".toml"


@dataclass(frozen=True)
class Reading:
    """What is said of reading a file, as of ``pulse.load``; and ``load``, that itself, for models that a file names."""

    load: Callable[..., Loaded]
    inputs: Mapping[str, str] | None = None
    constants: Mapping[str, Any] | None = None
    chunking: Chunking = NOTHING
    ignore_value_info: bool = False
    budget: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Content:
    """What a model is read from: a path, bytes, or an ``onnx.ModelProto``.

    head  its first bytes; none of a folder, a ModelProto, and a file that cannot be read
    """

    source: "Path | bytes | ModelProto"
    head: bytes = b""

    @classmethod
    def of(cls, source: "ModelSource") -> "Content":
        """With the head; what cannot be read is left to a reader, which says why."""
        if isinstance(source, bytes):
            return cls(source, source[:HEAD])
        if not isinstance(source, str | PathLike):
            return cls(source)
        path = Path(source)
        try:
            if not path.is_file():
                return cls(path)
            with path.open("rb") as file:
                return cls(path, file.read(HEAD))
        except (OSError, ValueError):
            return cls(path)

    @property
    def path(self) -> Path | None:
        """None of what is in memory."""
        return self.source if isinstance(self.source, Path) else None


@dataclass(frozen=True)
class Format:
    """A format of models.

    name        what people call it
    recognises  whether content is of it, by its bytes; where these do not tell, by its name
    read        the model; raises PulseError
    """

    name: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content, Reading], Model | TypedModel]


def format_of(content: Content) -> Format:
    """The first format that recognises it; the last one takes what no other does, and says what that looks like."""
    return next(format for format in FORMATS if format.recognises(content))


def _is_recipe(content: Content) -> bool:
    named = content.path is not None and content.path.suffix.lower() == RECIPE_SUFFIX
    return content.path is not None and (named or RECIPE.match(content.head) is not None)


def _read_recipe(content: Content, reading: Reading) -> TypedModel:
    from pulse.recipes.whole import recipe_model

    assert content.path is not None
    said = {"inputs": reading.inputs, "constants": reading.constants, **reading.chunking.said}
    for option, value in said.items():
        if option != "pulse" and (value or option == "states"):
            raise LoadError(
                f"{content.path}: a recipe says itself how its models are called; leave out {spelled(option)}, and "
                f"write {option} in the stage that it is for"
            )
    return recipe_model(
        content.path, reading.load, {"ignore_value_info": reading.ignore_value_info, "budget": reading.budget}
    )


def read_onnx(
    source: "ModelSource",
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    ignore_value_info: bool = False,
    budget: Mapping[str, float] | None = None,
) -> Model:
    """The nodes of an ONNX file, from a path, its bytes or a ModelProto.

    inputs, constants, ignore_value_info, budget   as of ``pulse.load``
    Raises   LoadError: the file cannot be read, or ``inputs`` or ``constants`` does not fit it
    """
    from pulse.onnx.read.reader import load

    return Model.of(load(source, inputs, constants, ignore_value_info, budget))


def _read_onnx(content: Content, said: Reading) -> Model:
    return read_onnx(content.source, said.inputs, said.constants, said.ignore_value_info, said.budget)


FORMATS: Sequence[Format] = (
    Format("recipe", _is_recipe, _read_recipe),
    Format("ONNX", lambda _: True, _read_onnx),
)
"""In the order in which they are tried; ONNX last, since protobuf has no mark of its own."""
