"""A first recipe of a model."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulse.errors import LoadError, PulseError, PulsifyError
from pulse.facts import shape_text
from pulse.loading.load import load
from pulse.loading.loaded import Loaded
from pulse.onnx.metadata import is_exported
from pulse.recipes.guessing import guessed, is_sound
from pulse.recipes.rates import KEY, growth
from pulse.recipes.reading import parsed
from pulse.recipes.spelling import as_keys, toml
from pulse.recipes.whole import joined
from pulse.wording import current_spelling, speaking


@dataclass(frozen=True)
class Proposal:
    """A recipe to begin with.

    text    of the file
    notes   what is guessed, and what has to be filled in, one line each
    """

    text: str
    notes: tuple[str, ...]


def proposed(model: Path, folder: Path) -> Proposal:
    """A recipe of a model, to stand in a folder.

    Raises PulseError: the model cannot be read, or nothing usual fits its input
    """
    with speaking(as_keys(current_spelling())):
        return _proposed(model, folder)


def _proposed(model: Path, folder: Path) -> Proposal:
    notes: list[str] = []
    opened, options = _opened(model, notes)
    whole = opened.analyse()
    streams = {name: fact for name, fact in whole.inputs.items() if growth(fact)}
    for name, fact in whole.inputs.items():
        if name not in streams:
            notes.append(f"{name} ({fact}) does not stream: add constants = {toml({name: 0})} with its value")
    outputs = [name for name, fact in whole.outputs.items() if growth(fact) and fact.shape[0] == 1]
    if not streams or not outputs:
        raise LoadError(f"{model}: has no input and output of a stream; there is nothing to put around it")
    if len(outputs) < len(whole.outputs) and opened.chunks is None:
        options["outputs"] = outputs
        notes.append(f"of its outputs {', '.join(outputs)} go on with every frame, the others are left out")
    name, fact = next(iter(streams.items()))
    found = guessed(fact, whole.outputs[outputs[0]])
    if found is None:
        raise LoadError(
            f"{model}: {name} ({fact}) is no sound, spectrum, filter bank or frame of a usual size; write its recipe "
            "by hand, see docs/recipes.md"
        )
    if is_sound(fact.shape):
        notes.append(f"{name} ({shape_text(fact.shape)}) is sound; nothing is put in front of it")
    if len(streams) > 1:
        notes.append(f"{', '.join(list(streams)[1:])}: inputs of the whole, as nothing gives them")
    told = whole.metadata.get(KEY, "")
    rate = int(told) if told.isascii() and told.isdigit() and is_sound(fact.shape) else found.rate_hz
    if str(rate) != told:
        notes.append(f"the rate of {rate} Hz is a guess")
    path = _path(model, folder)
    options_lines = [f"{key} = {toml(value)}" for key, value in options.items()]
    reads = [f"from = {toml({name: 'features'})}"] if len(streams) > 1 and found.front else []
    front = [*found.front]
    if reads:
        front[-1] += '\nas = "features"'
    stages = [*front, "\n".join([f"model = {path}", *options_lines, *reads, *found.model_lines]), *found.back]
    text = "\n".join([f"rate = {rate}", *(f"\n[[stage]]\n{stage}" for stage in stages), ""])
    notes += found.notes
    try:
        joined(parsed(text, folder / "recipe.toml"), load)
    except PulseError as error:
        notes.append(f"it does not fit as it is: {error}")
    return Proposal(text, tuple(notes))


def _opened(path: Path, notes: list[str]) -> tuple[Loaded, dict[str, Any]]:
    """The model, and what its stage has to say of it."""
    loaded = load(path)
    options: dict[str, Any] = {}
    try:
        loaded.analyse()
    except PulsifyError as error:
        options["pulse"] = 1
        loaded = loaded.at(1)
        try:
            loaded.analyse()
        except PulseError:
            raise LoadError(
                f"{error}; its author knows: write its recipe by hand, see docs/recipes.md"
            ) from error
        notes.append("it takes chunks of any length; pulse = 1 gives it a frame in each")
    else:
        notes += [f"{name} counts streams, here {size}" for name, size in loaded.sizes.items()]
    if is_exported(loaded.metadata):
        raise LoadError(
            f"{path}: was written in pulses, so it needs no recipe; give the model that it was made of"
        )
    return loaded, options


def _path(model: Path, folder: Path) -> str:
    """The model as the recipe names it. Raises LoadError."""
    found = os.path.relpath(model, folder)
    if not found.isprintable():
        raise LoadError(f"{model}: a recipe is text and cannot name it; rename the file")
    return json.dumps(found, ensure_ascii=False)
