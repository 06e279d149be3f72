"""Opening whatever says what a model is: a recipe, or a model itself."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pulse.chunks.chunking import Chunking
from pulse.chunks.opening import Opened, open_model
from pulse.errors import LoadError
from pulse.onnx.metadata import RECIPE as ENTRY
from pulse.onnx.read.likeness import RECIPE
from pulse.wording import spelled

if TYPE_CHECKING:
    from pulse.model import ModelSource

SUFFIX = ".toml"
_READ = 4096


def is_recipe(source: "ModelSource") -> bool:
    """Whether a source of a model is a recipe, or a model that holds one in its metadata."""
    if is_recipe_file(source):
        return True
    from pulse.onnx.read.entries import stored_values

    return bool(stored_values(source, ENTRY))


def path_of(source: "ModelSource") -> Path | None:
    """Where a file is; None of bytes and a ModelProto."""
    return Path(source) if isinstance(source, str | PathLike) else None


def is_recipe_file(source: object) -> bool:
    """Whether a source of a model is a path that ends in .toml, or a file that begins as recipes do."""
    if not isinstance(source, str | PathLike):
        return False
    path = Path(cast("str | PathLike[str]", source))
    if path.suffix.lower() == SUFFIX:
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return RECIPE.match(file.read(_READ)) is not None
    except (OSError, ValueError):
        return False


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
    from pulse.recipes.whole import recipe_model

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
                f"{path_of(source) or 'the model'}: a recipe says itself how its models are called; leave out "
                f"{spelled(option)}, and write {option} in the stage that it is for"
            )
    original = recipe_model(source, {"ignore_value_info": ignore_value_info, "budget": budget})
    if given.outputs is not None:
        original = original.with_outputs(given.outputs)
    return Opened.of(original, symbol)
