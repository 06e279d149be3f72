"""The whole model of a recipe: its stages, joined."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pulse.chain import Stage, chain
from pulse.errors import LoadError, PulseError
from pulse.facts import TypedFact
from pulse.recipes import functions, models
from pulse.recipes.rates import KEY, Rates
from pulse.recipes.reading import read_recipe
from pulse.recipes.recipe import Recipe, RecipeStage
from pulse.recipes.spelling import as_keys
from pulse.typed import TypedModel
from pulse.wording import current_spelling, speaking

_open: ContextVar[tuple[Path, ...]] = ContextVar("open", default=())
"""The recipes that are being opened, each by the one before it."""


def recipe_model(path: Path, limits: Mapping[str, Any] | None = None) -> TypedModel:
    """The whole model of a recipe, offline.

    limits   ``budget`` and ``ignore_value_info`` as of ``pulse.stream``, for each of its models
    Raises   LoadError, naming the file and the number of the stage
    """
    with _opening(path):
        return joined(read_recipe(path), limits)


def joined(recipe: Recipe, limits: Mapping[str, Any] | None = None) -> TypedModel:
    """The same of a recipe that was read. Raises LoadError."""
    with speaking(as_keys(current_spelling())):
        rates = Rates(recipe.rate_hz, functions.hears_sound(recipe.stages[0]))
        stages = [_stage(recipe, stage, rates, limits or {}) for stage in recipe.stages]
        try:
            model = chain(*stages, outputs=recipe.outputs, title=recipe.title)
        except PulseError as error:
            raise LoadError(f"{recipe.path}: {error}") from error
    model.metadata.pop(KEY, None)
    model.metadata.update(rates.metadata())
    return model


@contextmanager
def _opening(path: Path) -> Generator[None]:
    """Raises LoadError where a recipe is a stage of itself."""
    before, here = _open.get(), path.resolve()
    if here in before:
        raise LoadError(f"{path}: the recipe is a stage of itself; name another model")
    token = _open.set((*before, here))
    try:
        yield
    finally:
        _open.reset(token)


def _stage(recipe: Recipe, stage: RecipeStage, rates: Rates, limits: Mapping[str, Any]) -> Stage:
    """A stage of the chain, whose model is made when what it reads is known."""
    folder = recipe.path.parent

    def opened(facts: Sequence[TypedFact]) -> TypedModel:
        try:
            if stage.kind != "model":
                return functions.called(stage, folder, rates, facts)
            model = models.opened(stage, folder, limits)
            rates.agree_model(model, facts, stage.place)
        except PulseError as error:
            raise LoadError(f"{stage.place}: {error}") from error
        return model

    return Stage(opened, stage.reads, stage.gives)
