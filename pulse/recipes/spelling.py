"""Spelling of parameters in messages while a recipe is opened: as its keys."""

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from pulse.recipes.model_stages import OPTIONS
from pulse.support.wording import Spelling

KEYS = {"reads": "from", "output_names": "as", **{option: option for option in OPTIONS}}
"""Parameter -> key."""


def recipe_spelling(otherwise: Spelling) -> Spelling:
    """Spell a parameter as in a recipe: ``inputs = { x = "1,80,T" }``; others are spelled as outside recipes."""

    def spell(parameter: str, example: Any = None) -> str:
        if parameter not in KEYS:
            return otherwise(parameter, example)
        return KEYS[parameter] + ("" if example is None else f" = {toml_text(example)}")

    return spell


def toml_text(value: Any) -> str:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        if items:
            return "{ " + ", ".join(f"{_key(name)} = {toml_text(item)}" for name, item in items) + " }"
        return "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_text, cast('list[Any]', value)))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else json.dumps(name, ensure_ascii=False)
