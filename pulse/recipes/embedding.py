"""Putting a recipe into the metadata of its model."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from onnx import ModelProto, helper

from pulse.errors import LoadError
from pulse.metadata import RECIPE, is_exported
from pulse.onnx.read.file import read_source
from pulse.onnx.read.metadata_entries import metadata_of
from pulse.recipes.embedded import embedded_text
from pulse.recipes.reading import parse_recipe
from pulse.recipes.recipe import ITSELF, Recipe, RecipeContext
from pulse.recipes.recipe_model import join_stages
from pulse.recipes.recognition import is_recipe_file
from pulse.recipes.spelling import toml_text


def embed_recipe(text: str, context: RecipeContext) -> ModelProto:
    """Return the one model that a recipe names, with the recipe in its metadata; there its name is ``"."``.

    Weights in a file next to the model stay there. Raises LoadError: the recipe names several models, or one in pulses
    """
    stage_index, model = _only_model(parse_recipe(text, context))
    proto = _read_model(model)
    metadata = {entry.key: entry.value for entry in proto.metadata_props if entry.key != RECIPE}
    table = tomllib.loads(text)
    table["stage"][stage_index - 1]["model"] = ITSELF
    helper.set_model_props(proto, {**metadata, RECIPE: _spell_out(table)})
    return proto


def require_opens(file: Path, path: Path) -> None:
    """Raise LoadError if the recipe in a file does not open once the file is named ``path``, in the same folder."""
    location = f"{path}: the recipe in its metadata"
    join_stages(parse_recipe(embedded_text(file, location), RecipeContext(location, path, path.parent, file)))


def _spell_out(table: Mapping[str, Any]) -> str:
    """Return the text of a recipe that was read: its keys and stages, without comments."""
    stages = cast("Sequence[Mapping[str, Any]]", table["stage"])
    lines = [f"{key} = {toml_text(value)}" for key, value in table.items() if key != "stage"]
    for stage in stages:
        lines += ["", "[[stage]]", *(f"{key} = {toml_text(value)}" for key, value in stage.items())]
    return "\n".join([*lines, ""])


def _only_model(recipe: Recipe) -> tuple[int, Path]:
    """Return the number of its stage, and its file."""
    models_by_stage = {
        stage.number: recipe.context.resolve_path(stage.options["model"])
        for stage in recipe.stages
        if stage.kind == "model"
    }
    models = {stage_index: path for stage_index, path in models_by_stage.items() if not is_recipe_file(path)}
    if len(models) != 1:
        count = f"{len(models)} models" if models else "no models"
        raise LoadError(
            f"{recipe.context.location}: names {count}, but a file can only contain its own recipe; "
            "pulse convert -o makes one file of all stages"
        )
    return next(iter(models.items()))


def _read_model(path: Path) -> ModelProto:
    """Read the file without changes."""
    read_source(path)
    proto = ModelProto.FromString(path.read_bytes())
    if is_exported(metadata_of(proto)):
        raise LoadError(
            f"{path}: was written in pulses, so it needs no recipe; give the model that it was made from"
        )
    return proto
