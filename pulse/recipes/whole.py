"""The whole model of a recipe: its stages, joined."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pulse.chain.chain import chained
from pulse.chain.stage import Stage
from pulse.errors import LoadError, PulseError
from pulse.facts import TypedFact
from pulse.models import TypedModel
from pulse.recipes import functions, models
from pulse.recipes.models import Load
from pulse.recipes.rates import KEY, Rates
from pulse.recipes.reading import read_recipe
from pulse.recipes.recipe import Recipe, RecipeStage
from pulse.recipes.spelling import as_keys
from pulse.wording import current_spelling, speaking

MOST_STAGES = 256
"""Stages of a recipe, those of recipes in it included."""


@dataclass
class _Opening:
    """The recipes that are being opened, each by the one before it, and the stages of all that were opened so far."""

    paths: list[Path] = field(default_factory=list[Path])
    stages: int = 0


_opening: ContextVar[_Opening | None] = ContextVar("opening", default=None)


def recipe_model(path: Path, load: Load, limits: Mapping[str, Any] | None = None) -> TypedModel:
    """The whole model of a recipe, offline.

    load     ``pulse.load``, for its models
    limits   ``budget`` and ``ignore_value_info`` as of ``pulse.load``, for each of its models
    Raises   LoadError, naming the file and the number of the stage
    """
    with _reading(path):
        return joined(read_recipe(path), load, limits)


def joined(recipe: Recipe, load: Load, limits: Mapping[str, Any] | None = None) -> TypedModel:
    """The same of a recipe that was read. Raises LoadError."""
    with speaking(as_keys(current_spelling())):
        opening = _opening.get() or _Opening()
        opening.stages += len(recipe.stages)
        if opening.stages > MOST_STAGES:
            raise LoadError(
                f"{recipe.path}: more than {MOST_STAGES} stages, with those of the recipes in it; convert a part of it "
                "to one file with pulse convert -o"
            )
        rates = Rates(recipe.rate_hz, functions.hears_sound(recipe.stages[0]))
        stages = [_stage(recipe, stage, rates, load, limits or {}) for stage in recipe.stages]
        try:
            model = chained(stages, _called, recipe.outputs, recipe.title, recipe.inputs)
        except PulseError as error:
            raise LoadError(f"{recipe.path}: {error}") from error
    model.metadata.pop(KEY, None)
    model.metadata.update(rates.metadata())
    return model


@contextmanager
def _reading(path: Path) -> Generator[None]:
    """Raises LoadError where a recipe is a stage of itself."""
    opening, here = _opening.get() or _Opening(), path.resolve()
    if here in opening.paths:
        raise LoadError(f"{path}: the recipe is a stage of itself; name another model")
    token = _opening.set(opening)
    opening.paths.append(here)
    try:
        yield
    finally:
        opening.paths.pop()
        _opening.reset(token)


def _stage(recipe: Recipe, stage: RecipeStage, rates: Rates, load: Load, limits: Mapping[str, Any]) -> Stage:
    """A stage of the chain, whose model is made when what it reads is known."""
    folder = recipe.path.parent

    def opened(facts: Sequence[TypedFact]) -> TypedModel:
        try:
            if stage.kind != "model":
                return functions.called(stage, folder, rates, facts)
            model = models.opened(stage, folder, load, limits)
            rates.agree_model(model, facts, stage.place)
        except PulseError as error:
            raise LoadError(f"{stage.place}: {error}") from error
        return model

    return Stage(opened, stage.reads, stage.gives)


def _called(stage: Stage, facts: Sequence[TypedFact]) -> TypedModel:
    return cast("Callable[[Sequence[TypedFact]], TypedModel]", stage.model)(facts)
