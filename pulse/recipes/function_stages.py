"""The stages that are functions of ``pulse.front``: their parameters, and the shapes that follow from their inputs."""

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import signature
from os import PathLike
from typing import Any, get_args, get_type_hints

from pulse.errors import LoadError
from pulse.facts import TypedFact, shape_text
from pulse.front import FUNCTIONS
from pulse.front.default_shapes import SOUND
from pulse.models import TypedModel
from pulse.recipes.recipe import RecipeContext, RecipeStage
from pulse.recipes.recipe_rate import RecipeRate
from pulse.support.value_types import TomlTable, require_known, require_type

SHAPES = ("shape", "mask_shape")
"""Parameters that are the shapes of the first input and of the second."""
RATE = "sample_rate"


@cache
def parameters(name: str) -> Mapping[str, object]:
    """Return the parameters of a function, and their types."""
    hints = get_type_hints(FUNCTIONS[name], localns={"PathLike": PathLike})
    return {parameter: hints[parameter] for parameter in signature(FUNCTIONS[name]).parameters}


def check_parameters(name: str, values: TomlTable, location: str) -> dict[str, Any]:
    """Return the parameters in a recipe. Raises LoadError: unknown, missing, or of a wrong type."""
    types = parameters(name)
    require_known(values, types, location, "parameter")
    for parameter, value in values.items():
        require_type(parameter, value, types[parameter], location)
    for parameter in signature(FUNCTIONS[name]).parameters.values():
        if parameter.default is parameter.empty and parameter.name not in values:
            raise LoadError(f"{location}: {name} needs {parameter.name}")
    return dict(values)


def reads_sound(first: RecipeStage) -> bool:
    """Return whether a recipe that begins with this stage reads samples of sound; a model is assumed to."""
    return first.kind == "model" or signature(FUNCTIONS[first.kind]).parameters[SHAPES[0]].default == SOUND


def call_function(
    stage: RecipeStage, context: RecipeContext, rate: RecipeRate, facts: Sequence[TypedFact]
) -> TypedModel:
    """Return the model of a stage after wires of these facts. Raises PulseError: they or the options do not fit."""
    types = parameters(stage.kind)
    options = {name: _resolved_option(value, types[name], context) for name, value in stage.options.items()}
    for parameter, fact in zip(SHAPES, _order_facts(stage, facts)):
        if parameter in types:
            options.setdefault(parameter, shape_text(fact.shape))
    if RATE in types:
        known_hz = rate.hz if rate.sound else None
        options.setdefault(RATE, known_hz or signature(FUNCTIONS[stage.kind]).parameters[RATE].default)
        if rate.sound:
            rate.require_rate(options[RATE], stage.title)
    return FUNCTIONS[stage.kind](**options)


def _resolved_option(value: Any, hint: object, context: RecipeContext) -> Any:
    """Resolve a path against the recipe's folder; return other values unchanged."""
    paths = any(PathLike in (part, getattr(part, "__origin__", None)) for part in get_args(hint))
    return str(context.resolve_path(value)) if paths and isinstance(value, str) else value


def _order_facts(stage: RecipeStage, facts: Sequence[TypedFact]) -> Sequence[TypedFact]:
    """Return the facts of the inputs, x first."""
    if isinstance(stage.reads, Mapping):
        return [fact for _, fact in sorted(zip(stage.reads, facts), key=lambda pair: pair[0] != "x")]
    return facts
