"""The whole model of a recipe: its stages, joined."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse.chains import Stage, chain
from pulse.errors import LoadError, PulseError
from pulse.facts import TypedFact
from pulse.loading.format_registry import Content, ReadOptions
from pulse.metadata import RATE_KEY, RECIPE, TITLE
from pulse.models import TypedModel
from pulse.recipes import function_stages, model_stages
from pulse.recipes.embedded import embedded_recipe
from pulse.recipes.reading import read_recipe
from pulse.recipes.recipe import Recipe, RecipeStage
from pulse.recipes.recipe_rate import RecipeRate
from pulse.recipes.recognition import is_recipe_file, path_of
from pulse.recipes.spelling import recipe_spelling
from pulse.support.wording import current_spelling, spell, use_spelling

if TYPE_CHECKING:
    from pulse.onnx.read.file import ModelSource

MAX_STAGES = 256
"""Stages of a recipe, including recipes in it."""


@dataclass
class _Opening:
    """The recipes that are being opened, each by the one before it, and the stages of all that were opened so far."""

    paths: list[Path] = field(default_factory=list[Path])
    stages: int = 0


_opening: ContextVar[_Opening | None] = ContextVar("opening", default=None)


def recipe_model(source: "ModelSource", limits: Mapping[str, Any] | None = None) -> TypedModel:
    """Return the whole model of a recipe, offline.

    source   its file, or a model that holds one in its metadata
    limits   ``budget`` and ``ignore_value_info`` as in ``pulse.load``, for each of its models
    Raises   LoadError: a file cannot be read, or a stage does not fit the ones before it
    """
    path = path_of(source)
    with _guard_recursion(path):
        if path is not None and is_recipe_file(path):
            return join_stages(read_recipe(path), limits)
        return join_stages(embedded_recipe(source), limits)


def join_stages(recipe: Recipe, limits: Mapping[str, Any] | None = None) -> TypedModel:
    """Return the whole model of a parsed recipe, offline. Raises LoadError: a stage does not open or fit."""
    with use_spelling(recipe_spelling(current_spelling())):
        opening = _opening.get() or _Opening()
        opening.stages += len(recipe.stages)
        if opening.stages > MAX_STAGES:
            raise LoadError(
                f"{recipe.context.location}: more than {MAX_STAGES} stages, including recipes in it; convert a "
                "part of it to one file with pulse convert -o"
            )
        rate = RecipeRate(recipe.rate_hz, function_stages.reads_sound(recipe.stages[0]))
        stages = [_stage(recipe, stage, rate, limits or {}) for stage in recipe.stages]
        try:
            model = chain(*stages, outputs=recipe.outputs, title=recipe.title, inputs=recipe.inputs)
        except PulseError as error:
            raise LoadError(f"{recipe.context.location}: {error}") from error
    for key in (RATE_KEY, RECIPE, TITLE):
        model.metadata.pop(key, None)
    if recipe.titled:
        model.metadata[TITLE] = recipe.title
    model.metadata.update(rate.metadata())
    return model


@contextmanager
def _guard_recursion(path: Path | None) -> Generator[None]:
    """Refuse a recipe that is a stage of itself."""
    opening = _opening.get() or _Opening()
    resolved = Path() if path is None else path.resolve()
    if path is not None and resolved in opening.paths:
        raise LoadError(f"{path}: the recipe is a stage of itself; name another model")
    token = _opening.set(opening)
    opening.paths.append(resolved)
    try:
        yield
    finally:
        opening.paths.pop()
        _opening.reset(token)


def _stage(recipe: Recipe, stage: RecipeStage, rate: RecipeRate, limits: Mapping[str, Any]) -> Stage:
    """Return a stage of the chain, whose model is created when the facts of its inputs are known."""

    def to_typed(facts: Sequence[TypedFact]) -> TypedModel:
        try:
            if stage.kind != "model":
                return function_stages.call_function(stage, recipe.context, rate, facts)
            model = model_stages.open_stage_model(stage, recipe.context, limits)
            rate.require_model_rate(model, facts, stage.title)
        except PulseError as error:
            raise LoadError(f"{stage.title}: {error}") from error
        return model

    return Stage(to_typed, stage.reads, stage.output_names)


def read_recipe_content(content: Content, options: ReadOptions) -> TypedModel:
    """Return the whole model of a recipe, a file or in the metadata of one.

    Raises LoadError: it is wrong, or an option belongs to a stage
    """
    values = {
        "inputs": options.inputs,
        "constants": options.constants,
        "signature": options.signature,
        **options.chunking.given_options,
    }
    for option, value in values.items():
        if option != "pulse" and (value or option == "states"):
            raise LoadError(
                f"{content.path or 'the model'}: a recipe itself describes how its models are called; omit "
                f"{spell(option)}, and write {option} in the stage that it is for"
            )
    return recipe_model(
        content.source, {"ignore_value_info": options.ignore_value_info, "budget": options.budget}
    )
