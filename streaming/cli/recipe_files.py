"""The models that ``pulse recipe`` describes, and the file that it writes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pulse.errors import InputError
from pulse.loading.format_registry import Content, find_format
from pulse.recipes.reading import read_recipe
from pulse.recipes.recognition import holds_recipe, is_recipe_file
from pulse.support.wording import count_of
from streaming.files.atomic import complete_file, kind_of, refuse_same
from streaming.opening.module_import import read_module_name

if TYPE_CHECKING:
    from pulse.recipes.recipe import RecipeContext

SUFFIXES = {"recipe": ".toml", "model": ".onnx"}


def refuse_bad_use(models: Sequence[Path], output: Path | None, embed: Path | None) -> None:
    """Raise InputError for options that exclude each other."""
    if output is not None and embed is not None:
        raise InputError("-o writes a recipe and --embed a model with the recipe inside; give one of them")
    if len(models) > 2:
        raise InputError(
            f"{count_of(len(models), 'model')}: a recipe is proposed for one or two; write one for more by hand, see "
            "docs/recipes.md"
        )
    for path, what in ((output, "recipe"), (embed, "model")):
        if path is not None and path.suffix.lower() != SUFFIXES[what]:
            raise InputError(f"{path}: a {what} is written as {SUFFIXES[what]}, not {kind_of(path)}")
        if path is not None and path.exists():
            refuse_same(models, [path])
            raise InputError(f"{path}: already exists; move it away, or give another name")
    if (named := next(filter(None, map(read_module_name, models)), None)) is not None:
        raise InputError(
            f"{named}: a recipe names a model file, not code; export the module with torch.onnx.export first"
        )
    if embed is None and is_recipe_file(models[0]):
        raise InputError(
            f"{models[0]}: is already a recipe; --embed FILE writes its model with the recipe inside"
        )


def files_of_model(path: Path | None) -> Sequence[Path]:
    """Return the file of a model, and those that it names if it is a recipe."""
    if path is None:
        return []
    if not path.is_file() or not is_recipe_file(path):
        return [path]
    recipe = read_recipe(path)
    models = [stage.options["model"] for stage in recipe.stages if stage.kind == "model"]
    return [path, *map(recipe.context.resolve_path, models)]


def describe_models(
    models: Sequence[Path], folder: Path, hop: int | None, channels: int | None
) -> "tuple[str, Sequence[str], RecipeContext]":
    """Return a recipe of models, for a file in a folder: its text, remarks for the user, and its context.

    hop       samples from one frame to the next, if known
    channels  the channels of audio on the second axis of the input, if it has them
    Raises PulseError: a model cannot be read, nothing usual fits its input, or two do not fit
    """
    from pulse import formats as formats  # registers the formats
    from pulse.recipes.embedded import embedded_recipe, embedded_text
    from pulse.recipes.proposal import propose_recipe
    from pulse.recipes.reading import read_text
    from pulse.recipes.recipe import RecipeContext

    if len(models) == 1 and is_recipe_file(models[0]):
        return read_text(models[0]), (), RecipeContext.of(models[0])
    if len(models) == 1 and find_format(Content.of(models[0])).recognises is holds_recipe:
        context = embedded_recipe(models[0]).context
        note = f'{models[0]} holds this recipe in its metadata; model = "." is the file itself'
        return embedded_text(models[0], context.location), (note,), context
    proposal = propose_recipe(models, folder, hop, channels)
    return proposal.text, proposal.notes, RecipeContext.of(folder / "recipe.toml")


def write_recipe(text: str, path: Path) -> None:
    """Write a recipe. Raises InputError: it cannot be written."""
    with complete_file(path) as part:
        part.write_text(text, encoding="utf-8")


def embed_in(text: str, context: "RecipeContext", path: Path) -> None:
    """Write the model of a recipe with the recipe inside.

    Raises LoadError: the recipe names several models, or does not open there; InputError: the file cannot be written
    """
    from pulse.recipes.embedding import embed_recipe, require_opens

    model = embed_recipe(text, context).SerializeToString()
    with complete_file(path) as part:
        part.write_bytes(model)
        require_opens(part, path)
