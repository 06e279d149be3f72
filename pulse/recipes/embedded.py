"""Recipes in the metadata of ONNX files: the entry ``pulse_recipe``, in which ``model = "."`` is the file itself."""

from pathlib import Path
from typing import TYPE_CHECKING

from pulse.errors import LoadError
from pulse.metadata import RECIPE
from pulse.onnx.read.metadata_entries import stored_values
from pulse.recipes.reading import MAX_FILE_BYTES, parse_recipe
from pulse.recipes.recipe import Recipe, RecipeContext
from pulse.recipes.recognition import path_of
from pulse.support.wording import count_of

if TYPE_CHECKING:
    from pulse.onnx.read.file import ModelSource


def embedded_recipe(source: "ModelSource") -> Recipe:
    """Return the recipe of a file, its bytes or a ModelProto that has one. Raises LoadError as ``read_recipe``."""
    path = path_of(source)
    name = "these bytes" if isinstance(source, bytes) else "the model" if path is None else str(path)
    location = f"{name}: the recipe in its metadata"
    return parse_recipe(
        embedded_text(source, location),
        RecipeContext(location, path or Path("model"), path and path.parent, source),
    )


def embedded_text(source: "ModelSource", location: str) -> str:
    """Return the text of the recipe. Raises LoadError: several, too long, or not text."""
    text, *others = stored_values(source, RECIPE)
    if others:
        raise LoadError(
            f"{location}: occurs {count_of(1 + len(others), 'time')}; write the file again with one"
        )
    if not isinstance(text, str):
        raise LoadError(f"{location}: is not text; the file is damaged, get it again")
    if len(text) > MAX_FILE_BYTES:
        raise LoadError(f"{location}: has more than {MAX_FILE_BYTES} characters, too many for a recipe")
    return text
