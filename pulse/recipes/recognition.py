"""Recognition of recipes: as files, and in the metadata of models."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from pulse.loading.format_registry import Content
from pulse.metadata import RECIPE as ENTRY
from pulse.onnx.read.metadata_entries import stored_values
from pulse.onnx.read.unreadable_formats import RECIPE

if TYPE_CHECKING:
    from pulse.onnx.read.file import ModelSource

SUFFIX = ".toml"


def path_of(source: "ModelSource") -> Path | None:
    """Return the path of a file; None for bytes and a ModelProto."""
    return Path(source) if isinstance(source, str | PathLike) else None


def is_recipe(content: Content) -> bool:
    """Return whether content is a path that ends in .toml, or a file that begins as recipes do."""
    path = content.path
    return path is not None and (path.suffix.lower() == SUFFIX or RECIPE.match(content.head) is not None)


def is_recipe_file(path: Path) -> bool:
    """Return whether a path is a recipe's."""
    return is_recipe(Content.of(path))


def holds_recipe(content: Content) -> bool:
    """Return whether content is a model with a recipe in its metadata."""
    return bool(stored_values(content.source, ENTRY))
