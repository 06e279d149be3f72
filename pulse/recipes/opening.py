"""Opening whatever says what a model is: a recipe, or a model itself."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pulse.chain import Stage, chain
from pulse.chunks.chunking import Chunking
from pulse.chunks.opening import Opened, open_model
from pulse.errors import LoadError, PulseError
from pulse.facts import TypedFact
from pulse.recipes import functions, models
from pulse.recipes.rates import KEY, Rates
from pulse.recipes.reading import is_recipe, read_recipe
from pulse.recipes.recipe import Recipe, RecipeStage
from pulse.recipes.spelling import as_keys
from pulse.typed import TypedModel
from pulse.wording import current_spelling, speaking, spelled

if TYPE_CHECKING:
    from pulse.model import ModelSource

_open: ContextVar[tuple[Path, ...]] = ContextVar("open", default=())
"""The recipes that are being opened, each by the one before it."""


def open_source(
    source: "ModelSource",
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    chunking: Chunking | None = None,
    symbol: str | None = None,
    pulse: int | None = None,
    ignore_value_info: bool = False,
    budget: Mapping[str, float] | None = None,
) -> Opened:
    """As ``pulse.chunks.opening.open_model``, of a recipe as well; that says itself how its models are called.

    Raises PulseError
    """
    if not is_recipe(source):
        return open_model(source, inputs, constants, chunking, symbol, pulse, ignore_value_info, budget)
    path = Path(cast("str | PathLike[str]", source))
    given = chunking or Chunking()
    for option, value in {
        "inputs": inputs,
        "constants": constants,
        "states": given.states,
        "context": given.context,
        "axes": given.axes,
        "delay": given.delay,
        "initial": given.initial,
    }.items():
        if value or (option == "states" and value is not None):
            raise LoadError(
                f"{path}: a recipe says itself how its models are called; leave out {spelled(option)}, and write "
                f"{option} in the stage that it is for"
            )
    original = recipe_model(path, {"ignore_value_info": ignore_value_info, "budget": budget})
    if given.outputs is not None:
        original = original.with_outputs(given.outputs)
    return Opened.of(original, symbol)


def recipe_model(path: Path, limits: Mapping[str, Any] | None = None) -> TypedModel:
    """The whole model of a recipe, offline.

    limits   ``budget`` and ``ignore_value_info`` as of ``pulse.stream``, for each of its models
    Raises   LoadError, naming the file and the number of the stage
    """
    with _opening(path), speaking(as_keys(current_spelling())):
        recipe = read_recipe(path)
        rates = Rates(recipe.rate_hz, functions.hears_sound(recipe.stages[0]))
        stages = [_stage(recipe, stage, rates, limits or {}) for stage in recipe.stages]
        try:
            model = chain(*stages, outputs=recipe.outputs, title=recipe.title)
        except PulseError as error:
            raise LoadError(f"{path}: {error}") from error
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
