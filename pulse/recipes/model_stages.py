"""The stages that are models: the options other than ``model``, and the resulting stage of a chain."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pulse.chains import Stage
from pulse.chunks.chunking import Chunking
from pulse.errors import LoadError
from pulse.facts import Array
from pulse.loading.load import load
from pulse.loading.loaded_model import LoadedModel
from pulse.loading.onnx_files import read_onnx
from pulse.metadata import is_exported
from pulse.models import TypedModel
from pulse.recipes.recipe import ITSELF, RecipeContext, RecipeStage
from pulse.support.value_types import TomlTable, TomlValue, describe_type, fits, quote, require_known
from pulse.support.wording import spell

if TYPE_CHECKING:
    from pulse.onnx.read.file import ModelSource

_ARRAYS = Mapping[str, float | bool | list | str]  # pyright: ignore[reportMissingTypeArgument, reportUnknownVariableType]
OPTIONS: Mapping[str, object] = {
    "inputs": Mapping[str, str],
    "constants": _ARRAYS,
    "symbol": str,
    "pulse": int,
    "states": Mapping[str, str],
    "context": Mapping[str, int],
    "axes": Mapping[str, int],
    "delay": Mapping[str, int],
    "initial": _ARRAYS,
    "outputs": Sequence[str],
    "signature": str,
}
"""What ``pulse.load`` and ``pulse.Chunking`` take, as TOML has it."""
EXAMPLES = {
    "inputs": '{ feat = "1,80,T" }',
    "constants": "{ sr = 16000 }",
    "symbol": '"T"',
    "pulse": "512",
    "states": '{ h = "hn" }',
    "context": "{ input = 64 }",
    "axes": "{ x = 1 }",
    "delay": "{ y = 256 }",
    "initial": '{ h = "first.npy" }',
    "outputs": '["y"]',
    "signature": '"encode"',
}
ARRAY_SUFFIX = ".npy"


def check_options(path: TomlValue, values: TomlTable, location: str) -> dict[str, Any]:
    """Return the options of a model, including its path. Raises LoadError: unknown, or of a wrong type or value."""
    if not isinstance(path, str) or not path:
        raise LoadError(f'{location}: model = {quote(path)} must be the path of a file, such as "model.onnx"')
    require_known(values, ("from", "as", *OPTIONS), location, "key")
    for key, value in values.items():
        if not fits(value, OPTIONS[key]):
            advice = (
                "a table of numbers, lists or .npy files"
                if OPTIONS[key] is _ARRAYS
                else describe_type(OPTIONS[key])
            )
            raise LoadError(
                f"{location}: {key} = {quote(value)} must be {advice}, such as {key} = {EXAMPLES[key]}"
            )
        if OPTIONS[key] is _ARRAYS:
            for name, entry in cast("dict[str, TomlValue]", value).items():
                if not _is_array(entry):
                    raise LoadError(
                        f"{location}: {key}: {name} = {quote(entry)} must be a number, a list or a .npy file"
                    )
        elif OPTIONS[key] == Mapping[str, int] and any(
            number < 0 for number in cast("dict[str, int]", value).values()
        ):
            raise LoadError(
                f"{location}: {key} = {quote(value)} must not be negative, such as {EXAMPLES[key]}"
            )
    if "pulse" in values and cast("int", values["pulse"]) < 1:
        raise LoadError(f"{location}: pulse = {values['pulse']} must be at least 1")
    return {"model": path, **values}


def _is_array(value: TomlValue) -> bool:
    """Return whether a value is a number, numbers of one shape, or the name of a file of them."""
    if isinstance(value, str):
        return value.lower().endswith(ARRAY_SUFFIX)
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:
        return False


def open_stage_model(stage: RecipeStage, context: RecipeContext, limits: Mapping[str, Any]) -> TypedModel:
    """Return the model of a stage.

    limits   ``budget`` and ``ignore_value_info`` as in ``pulse.load``
    Raises   PulseError: the model cannot be read, or is ``"."`` in a recipe that is a separate file
    """
    options = dict(stage.options)
    name = options.pop("model")
    for key in ("constants", "initial"):
        if key in options:
            options[key] = {name: _resolve_value(entry, context) for name, entry in options[key].items()}
    chunking = Chunking(
        **{field.name: options.pop(field.name) for field in fields(Chunking) if field.name in options}
    )
    if name != ITSELF:
        return Stage(load(context.resolve_path(name), chunking=chunking, **options, **limits)).to_typed()
    if context.itself is None:
        raise LoadError(
            'model = "." is the file in whose metadata a recipe is, and this one is a separate file; name the model'
        )
    return _containing_model(context.itself, chunking, options, limits)


def _containing_model(
    source: "ModelSource", chunking: Chunking, options: Mapping[str, Any], limits: Mapping[str, Any]
) -> TypedModel:
    """Return the model that holds the recipe, without it."""
    if "signature" in options:
        raise LoadError(f"an ONNX file has no signatures; omit {spell('signature')}")
    loading_options = {key: options[key] for key in ("outputs", "symbol") if key in options}
    model = read_onnx(
        source, **{key: value for key, value in options.items() if key not in loading_options}, **limits
    )
    if is_exported(model.metadata):
        raise LoadError(
            "was written in pulses, so it needs no recipe; write one for the model that it was made from"
        )
    return LoadedModel(model, **loading_options, chunking=chunking).analyse()


def _resolve_value(value: Any, context: RecipeContext) -> Any:
    """Return the value of a constant; text is the path of a file that has it."""
    return _read_npy(context.resolve_path(value)) if isinstance(value, str) else value


def _read_npy(path: Path) -> Array:
    try:
        with path.open("rb") as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    except FileNotFoundError:
        raise LoadError(f"{path}: no such file; check the path") from None
    except (OSError, ValueError, EOFError) as error:
        raise LoadError(f"{path}: not an array in numpy's format: {error}") from error
