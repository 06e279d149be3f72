"""From the text of a file to a recipe; nothing that it names is opened here."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from pulse.errors import LoadError
from pulse.front import FUNCTIONS
from pulse.front.default_shapes import SOUND
from pulse.recipes import function_stages, model_stages
from pulse.recipes.recipe import Recipe, RecipeContext, RecipeStage
from pulse.support.file_bytes import file_bytes
from pulse.support.printable import MAX_TITLE_LENGTH, is_title
from pulse.support.value_types import TomlTable, TomlValue, fits, get_value, quote, require_known

MAX_FILE_BYTES = 1 << 20
"""Maximum number of bytes of a recipe; one of a hundred stages has some thousand."""
KEYS = ("title", "rate", "inputs", "outputs", "stage")
WIRING = ("from", "as")
_NAMES = Sequence[str] | Mapping[str, str] | str


def read_recipe(path: Path) -> Recipe:
    """Read a recipe. Raises LoadError: it cannot be read, or a key or stage is not valid."""
    return parse_recipe(read_text(path), RecipeContext.of(path))


def parse_recipe(text: str, context: RecipeContext) -> Recipe:
    """Return the recipe of a text. Raises LoadError as ``read_recipe``."""
    location = context.location
    try:
        table: dict[str, TomlValue] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{location}: not valid TOML: {error or 'it nests too deeply'}") from error
    require_known(table, KEYS, location, "key")
    title = get_value(table, "title", str, location, '"denoiser"')
    if title is not None and not is_title(title):
        raise LoadError(
            f"{location}: title = {quote(title)} must be one line of at most {MAX_TITLE_LENGTH} characters without "
            "/ and \\"
        )
    rate = get_value(table, "rate", int, location, "16000")
    if rate is not None and rate < 1:
        raise LoadError(
            f"{location}: rate = {rate} must be at least 1 sample per second, such as rate = 16000"
        )
    outputs = get_value(table, "outputs", Sequence[str], location, '["sound"]')
    inputs = _inputs(table, location)
    tables = table.get("stage")
    if not isinstance(tables, list) or not tables:
        raise LoadError(f"{location}: has no stages; each begins with a line [[stage]]")
    stages = [
        _stage(index, stage, location) for index, stage in enumerate(cast("list[TomlValue]", tables), start=1)
    ]
    _require_order(stages, location)
    return Recipe(context, title or context.path.stem, title is not None, rate, stages, outputs, inputs)


def _inputs(table: TomlTable, location: str) -> Mapping[str, str]:
    """Return the inputs that are declared, with their shapes."""
    declarations: Sequence[str] | Mapping[str, str] = (
        get_value(table, "inputs", Sequence[str] | Mapping[str, str], location, '["mic", "far"]') or ()
    )
    if isinstance(declarations, Mapping):
        return declarations
    for name in declarations:
        if declarations.count(name) > 1:
            raise LoadError(f"{location}: inputs: {name} occurs twice; give each input another name")
    return dict.fromkeys(declarations, SOUND)


def read_text(path: Path) -> str:
    """Return the text of a file. Raises LoadError: it cannot be read, or is too long."""
    try:
        return file_bytes(path, MAX_FILE_BYTES, "more than a recipe has; give the recipe itself").decode(
            "utf-8-sig"
        )
    except ValueError as error:
        raise LoadError(f"{path}: not valid TOML: {error}") from error


def _stage(number: int, entry: TomlValue, location: str) -> RecipeStage:
    location = f"{location}: stage {number}"
    if not isinstance(entry, dict):
        raise LoadError(f"{location}: {quote(entry)} must be a table; begin it with a line [[stage]]")
    table = cast("dict[str, TomlValue]", entry)
    function_keys = [key for key in table if key in FUNCTIONS or key == "model"]
    if len(function_keys) > 1:
        raise LoadError(
            f"{location}: has both {function_keys[0]} and {function_keys[1]}; give each its own [[stage]]"
        )
    if not function_keys:
        unknown = [key for key in table if key not in WIRING and key not in model_stages.OPTIONS]
        require_known(unknown, [*FUNCTIONS, "model"], location, "function")
        raise LoadError(f'{location}: has no function and no model; add one, such as model = "model.onnx"')
    (function,) = function_keys
    location = f"{location} ({function})"
    other_keys = {key: value for key, value in table.items() if key not in (function, *WIRING)}
    if function == "model":
        options = model_stages.check_options(table[function], other_keys, location)
    else:
        if not isinstance(table[function], dict):
            raise LoadError(
                f"{location}: {function} = {quote(table[function])} must be a table, such as {function} = {{}}"
            )
        for key in other_keys:
            if key in (*model_stages.OPTIONS, *function_stages.parameters(function)):
                owner = (
                    f"inside the table of {function}"
                    if key in function_stages.parameters(function)
                    else "next to model"
                )
                raise LoadError(f"{location}: {key} belongs {owner}, not next to {function}")
        require_known(other_keys, [*WIRING, function], location, "key")
        options = function_stages.check_parameters(
            function, cast("dict[str, TomlValue]", table[function]), location
        )
    reads, output_names = (_names(table, key, location) for key in WIRING)
    return RecipeStage(number, function, options, reads, output_names)


def _names(table: TomlTable, key: str, location: str) -> Sequence[str] | Mapping[str, str] | None:
    value = table.get(key)
    if value is None:
        return None
    if not fits(value, _NAMES):
        raise LoadError(
            f'{location}: {key} = {quote(value)} must be a name or a list of names, such as ["a", "b"]'
        )
    return [value] if isinstance(value, str) else cast("Sequence[str] | Mapping[str, str]", value)


def _require_order(stages: Sequence[RecipeStage], location: str) -> None:
    """Raise LoadError if a stage reads an output of itself or of a later stage."""
    makers: dict[str, RecipeStage] = {}
    for stage in stages:
        for name in stage.given_names:
            if name in makers:
                raise LoadError(
                    f"{location}: {stage.title}: gives {name}, as {makers[name].title} does; choose another name"
                )
            makers[name] = stage
    for stage in stages:
        for name in stage.read_names:
            if name in makers and makers[name].number >= stage.number:
                raise LoadError(
                    f"{location}: {stage.title}: reads {name}, which {makers[name].title} gives; a stage reads "
                    "what stages before it give: change their order, or what it reads"
                )
