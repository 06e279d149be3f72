"""A proposed recipe for one model, or for two in sequence."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np

from pulse.chunks.chunking import Chunking
from pulse.errors import LoadError, PulseError, PulseWarning, PulsifyError
from pulse.facts import TypedFact, is_sound_shape, shape_text
from pulse.interface import MAX_CHANNELS
from pulse.loading.load import load
from pulse.loading.loaded_model import LoadedModel
from pulse.metadata import is_exported, read_codes, stated_rate_hz
from pulse.recipes.framing import frame_model
from pulse.recipes.guessing import CHANNELS_INPUT, USUAL_BLOCKS, Guess, guess_recipe
from pulse.recipes.pairing import PairedModel, Stages, pair_stages
from pulse.recipes.reading import parse_recipe
from pulse.recipes.recipe import RecipeContext
from pulse.recipes.recipe_model import join_stages
from pulse.recipes.recipe_rate import symbol_rate
from pulse.recipes.spelling import recipe_spelling, toml_text
from pulse.support.record import record
from pulse.support.wording import count_of, current_spelling, spell, use_spelling

USUAL_CHUNK_FRAMES = (1, 512, 256, 160, 480, 1024)
"""The numbers of new frames per call to try if a model takes any number."""


@record
class Proposal:
    """A proposed recipe.

    text    content of the file
    notes   guesses, and values to fill in, one line each
    """

    text: str
    notes: tuple[str, ...]


def propose_recipe(
    models: Sequence[Path], folder: Path, hop: int | None = None, channels: int | None = None
) -> Proposal:
    """Return a recipe for a model, or for two if the second takes the output of the first, for a file in a folder.

    hop       samples from one frame to the next, if known; then a call with as many samples in as out is a frame
    channels  the channels of audio, on the second axis of the only model's input; None if it has no such axis
    Raises PulseError: a model cannot be read, nothing usual fits its input, or the two do not fit
    """
    if channels is not None and len(models) > 1:
        raise LoadError(f"{spell('channels', channels)} is for one model; write the recipe of two by hand")
    with use_spelling(recipe_spelling(current_spelling())):
        notes: list[str] = []
        with catch_warnings():
            filterwarnings("ignore", ".*each call takes", PulseWarning)  # the notes have it
            parts = [_part(model, folder, notes, hop, channels) for model in models]
        stages = Stages(parts[0].all_stages, parts[0].guess.notes) if len(parts) == 1 else pair_stages(*parts)
        rate_hz = parts[0].rate_hz or parts[0].guess.rate_hz
        if parts[0].rate_hz is None:
            notes.append(f"the rate of {rate_hz} Hz is a guess")
        notes += stages.notes
        head = [f"rate = {rate_hz}"]
        if channels is not None:
            head.append(f"inputs = {toml_text({CHANNELS_INPUT: f'{channels},T'})}")
        text = "\n".join([*head, *(f"\n[[stage]]\n{stage}" for stage in stages.texts), ""])
        try:
            join_stages(parse_recipe(text, RecipeContext.of(folder / "recipe.toml")))
        except PulseError as error:
            notes.append(f"it does not fit as it is: {error}")
        return Proposal(text, tuple(notes))


def _part(model: Path, folder: Path, notes: list[str], hop: int | None, channels: int | None) -> PairedModel:
    """Describe one model."""
    opened, options = _open_model(model, notes)
    framed = None if hop is None else frame_model(opened, hop)
    if framed is not None:
        opened = load(model, chunking=Chunking(axes=framed.axes))
        options["axes"] = dict(framed.axes)
    whole = opened.analyse()
    streams = {name: fact for name, fact in whole.inputs.items() if symbol_rate(fact)}
    outputs = [
        name
        for name, fact in whole.outputs.items()
        if symbol_rate(fact) and (framed is not None or fact.shape[0] == 1)
    ]
    if not streams or not outputs:
        raise LoadError(f"{model}: has no streaming input and output; there is nothing to put around it")
    if len(outputs) < len(whole.outputs) and opened.chunks is None:
        options["outputs"] = outputs
        notes.append(f"only the outputs that stream are kept: {', '.join(outputs)}")
    name, fact = next(iter(streams.items()))
    output_fact = whole.outputs[outputs[0]]
    guess = guess_recipe(fact, output_fact, hop, channels) if framed is None else framed.guess
    if guess is None:
        where = "" if channels is None else f", with {count_of(channels, 'channel')} on its second axis"
        raise LoadError(
            f"{model}: {name} ({fact}) is not audio, a spectrum, a filter bank or a frame of a usual size{where}; "
            f"write its recipe by hand, see docs/recipes.md{_channels_hint(fact)}{_stereo_hint(fact)}"
        )
    guess = _with_codes(guess, whole.metadata, (name, fact), (outputs[0], output_fact), notes)
    rate_hz = stated_rate_hz(whole.metadata) if is_sound_shape(fact.shape) else None
    if is_sound_shape(fact.shape):
        notes.append(f"{name} ({shape_text(fact.shape)}) is audio; nothing is added before it")
        _add_context_hint(opened, options, name, outputs[0], notes)
    _add_constant_hints(whole.inputs, streams, options, rate_hz or guess.rate_hz, notes)
    if len(streams) > 1:
        notes.append(
            f"{', '.join(list(streams)[1:])}: inputs of the whole model, since no stage outputs them"
        )
    for other, second in streams.items():
        if other != name and second.shape == fact.shape and guess.front:
            notes.append(
                f"{other} has the shape of {name}: if it is a second signal, give both names, as in "
                'inputs = ["mic", "far"], and give each its own front end, which reads it with from'
            )
    lines = [
        f"model = {_path(model, folder)}",
        *(f"{key} = {toml_text(value)}" for key, value in options.items()),
    ]
    return PairedModel(
        model.name, lines, guess, fact, output_fact, rate_hz, name if len(streams) > 1 else None
    )


def _with_codes(
    guess: Guess,
    metadata: Mapping[str, str],
    model_input: tuple[str, TypedFact],
    model_output: tuple[str, TypedFact],
    notes: list[str],
) -> Guess:
    """Return the stages with a quantisation before and a dequantisation after the model, if the file states codes."""
    front, back = list(guess.front), list(guess.back)

    def stage(function: str, port: tuple[str, TypedFact], verb: str) -> list[str]:
        name, fact = port
        codes = read_codes(metadata, name)
        if codes is None:
            return []
        notes.append(f"{name} {verb} codes of {fact.dtype.name}, according to the file")
        return [
            f"{function} = {toml_text({'scale': codes.scale, 'zero': codes.zero, 'type': fact.dtype.name})}"
        ]

    front += stage("quantize", model_input, "takes")
    back = stage("dequantize", model_output, "gives") + back
    return replace(guess, front=front, back=back)


def _stereo_hint(fact: TypedFact) -> str:
    """Return advice for a model whose frames may be channels of audio."""
    is_audio = fact.dtype == np.float32 and is_sound_shape(fact.shape, MAX_CHANNELS)
    return "; if its frames are channels of audio, it needs none" if is_audio else ""


def _channels_hint(fact: TypedFact) -> str:
    """Return advice on how to add the axis of size 1, if the shape has one after its first axis."""
    ones = [axis for axis, dim in enumerate(fact.shape) if axis and dim == 1]
    return f"; unsqueeze = {{ axis = {ones[0]} }} after a front end adds its axis of size 1" if ones else ""


def _add_context_hint(
    opened: LoadedModel, options: dict[str, Any], name: str, output: str, notes: list[str]
) -> None:
    """Note whether a chunk of sound begins with samples of the one before."""
    if opened.chunks is None or opened.resolution.call is None or "pulse" in options:
        return
    input_shape = opened.resolution.call.inputs[name].shape
    output_shape = opened.resolution.call.outputs[output].shape
    sizes = [
        max((int(dim) for dim in shape if not dim.symbols), default=1)
        for shape in (input_shape, output_shape)
    ]
    missing = sizes[0] - sizes[1]
    if sizes[1] > 1 and missing > 0:
        options["context"] = {name: missing}
        notes.append(
            f"a call takes {count_of(sizes[0], 'sample')} of {name} and gives {sizes[1]} of {output}: the first "
            f"{missing} are assumed "
            f"to be from the previous call; check this, and whether leading samples of {output} are to be "
            f"dropped, as in delay = {toml_text({output: sizes[1]})}"
        )
    elif sizes[0] == sizes[1] and sizes[0] in USUAL_BLOCKS:
        notes.append(
            f"a call takes {count_of(sizes[0], 'sample')} of {name} and gives as many: all of them are assumed to be "
            "new; if "
            f"calls take overlapping frames, say how far apart they are, as in {spell('hop', sizes[0] // 4)}"
        )
    elif sizes[1] == 1 and sizes[0] > 1:
        notes.append(
            f"a call takes {count_of(sizes[0], 'sample')} of {name}: all of them are assumed to be new; if the first "
            "ones are "
            f"from the previous call, say how many, as in context = {toml_text({name: sizes[0] // 9})}"
        )


def _add_constant_hints(
    inputs: Mapping[str, TypedFact],
    streams: Mapping[str, TypedFact],
    options: dict[str, Any],
    rate_hz: int,
    notes: list[str],
) -> None:
    """Add the inputs that do not stream: an integer is assumed to be the rate, others have to be filled in."""
    for name, fact in inputs.items():
        if name in streams:
            continue
        if all(dim == 1 for dim in fact.shape) and np.issubdtype(fact.dtype, np.integer):
            options.setdefault("constants", {})[name] = rate_hz
            notes.append(f"{name} ({fact}) is assumed to be the rate")
        else:
            notes.append(
                f"{name} ({fact}) does not stream: add constants = {toml_text({name: 0})} with its value"
            )


def _open_model(path: Path, notes: list[str]) -> tuple[LoadedModel, dict[str, Any]]:
    """Open the model; return it and the options that its stage must state, and add notes on guesses."""
    loaded = load(path)
    options: dict[str, Any] = {}
    try:
        loaded.analyse()
    except PulsifyError as error:
        loaded, size = _in_chunks(loaded, error)
        options["pulse"] = size
        notes.append(
            "it takes chunks of any length; pulse = 1 gives it one frame per chunk"
            if size == 1
            else f"it takes chunks of any length: pulse = {size} new frames in each is a guess; no chunk is assumed to "
            f"begin with frames of the previous one; if chunks do, state how many, as in context = "
            f"{toml_text({next(iter(loaded.analyse().inputs)): size // 8})}"
        )
    else:
        notes += [f"{name} counts streams, here {size}" for name, size in loaded.sizes.items()]
    if is_exported(loaded.metadata):
        raise LoadError(
            f"{path}: was written in pulses, so it needs no recipe; give the model that it was made from"
        )
    return loaded, options


def _in_chunks(loaded: LoadedModel, reason: PulsifyError) -> tuple[LoadedModel, int]:
    """Return a model that takes chunks of any length, with a length that suits it."""
    for size in USUAL_CHUNK_FRAMES:
        candidate = loaded.with_pulse(size)
        try:
            candidate.analyse()
        except PulseError:
            continue
        return candidate, size
    raise LoadError(
        f"{reason}; write the recipe by hand, with the chunk size that the model's author states, see docs/recipes.md"
    ) from reason


def _path(model: Path, folder: Path) -> str:
    """Return the model as the recipe names it."""
    path = os.path.relpath(model, folder)
    if not path.isprintable():
        raise LoadError(f"{model}: a recipe is text and cannot name it; rename the file")
    return json.dumps(path, ensure_ascii=False)
