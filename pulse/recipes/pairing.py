"""Guesses of the stages before, between and after one or two models, from their sizes."""

from collections.abc import Sequence
from typing import NamedTuple

from pulse.errors import LoadError
from pulse.facts import TypedFact, is_sound_shape, shape_text
from pulse.recipes.guessing import Guess
from pulse.recipes.recipe_rate import symbol_rate
from pulse.support.record import record

SPECTRAL = ("spectra", "magnitudes")


@record
class PairedModel:
    """A model of a recipe.

    name         name of its file
    lines        lines of its stage
    guess        the stages around it if it is the only model
    input_fact   type and shape of its first streaming input
    output_fact  type and shape of its first streaming output
    rate_hz      sample rate in hertz, if the file states it
    input_name   the name of that input, if there are others
    """

    name: str
    lines: Sequence[str]
    guess: Guess
    input_fact: TypedFact
    output_fact: TypedFact
    rate_hz: int | None
    input_name: str | None

    @property
    def all_stages(self) -> list[str]:
        """All stages for this model alone, as TOML without the lines that begin them."""
        front = [*self.guess.front]
        if front and self.input_name is not None:
            front[-1] += '\nas = "features"'
            return [
                *front,
                self.model_stage(f'from = {{ {self.input_name} = "features" }}'),
                *self.guess.back,
            ]
        return [*front, self.model_stage(), *self.guess.back]

    def model_stage(self, *more: str) -> str:
        """Return the stage of this model, with more lines."""
        return "\n".join([*self.lines, *more, *self.guess.model_lines])


class Stages(NamedTuple):
    """The stages as TOML, and the guesses."""

    texts: Sequence[str]
    notes: Sequence[str]


def pair_stages(first: PairedModel, second: PairedModel) -> Stages:
    """Return the stages of two models, of which the second takes the output of the first.

    Raises LoadError: no usual transform joins them.
    """
    for attempt in (_of_one_spectrum, _connect_directly, _sound_between):
        stages = attempt(first, second)
        if stages is not None:
            return stages
    output_shape, input_shape = shape_text(first.output_fact.shape), shape_text(second.input_fact.shape)
    raise LoadError(
        f"{first.name} gives {output_shape} and {second.name} takes {input_shape}: "
        "no usual transform connects the two; give them in the order in which they are called, or write the "
        "recipe by hand, see docs/recipes.md"
    )


def _of_one_spectrum(first: PairedModel, second: PairedModel) -> Stages | None:
    """Return the stages if the first changes a spectrum, and the second the same one or its frames of samples."""
    spectral, framed = first.guess, second.guess
    if spectral.kind not in SPECTRAL or not spectral.output_layout or spectral.samples != framed.samples:
        return None
    if framed.kind == "frames" and framed.back:
        stages = [*framed.front, f'rfft = {{ n = {spectral.samples}, layout = "{spectral.input_layout}" }}']
        _add(stages, first, "")
        stages += [
            f'irfft = {{ n = {spectral.samples}, layout = "{spectral.output_layout}" }}',
            second.model_stage(),
            *framed.back,
        ]
        note = (
            f"{spectral.samples} = 2 x {spectral.samples // 2}: the frames of {second.name} are assumed to be those "
            f"whose spectrum {first.name} changes"
        )
        return Stages(stages, [*spectral.notes[:-1], note, *framed.notes])
    if framed.kind in SPECTRAL and framed.output_layout and spectral.output_layout == framed.input_layout:
        stages = [spectral.front[0].partition("\n")[0]]
        _add(stages, first, "")
        _add(stages, second, "_2")
        note = f"{first.name} and {second.name} are assumed to change the same spectrum"
        return Stages([*stages, framed.back[-1]], [note, *spectral.notes, *framed.notes[:-1]])
    return None


def _add(stages: list[str], part: PairedModel, suffix: str) -> None:
    """Add a model that changes a spectrum after a stage that outputs one."""
    if part.guess.kind == "spectra":
        stages.append(part.model_stage())
        return
    stages[-1] += f'\nas = "spectrum{suffix}"'
    stages += [
        "magnitude = {}",
        _rename_wires(part.model_stage(), suffix),
        _rename_wires(part.guess.back[0], suffix),
    ]


def _connect_directly(first: PairedModel, second: PairedModel) -> Stages | None:
    """Return the stages if the outputs of the first have the sizes of the inputs of the second; else None."""
    fixed = [
        [int(dim) if not dim.symbols else None for dim in fact.shape]
        for fact in (first.output_fact, second.input_fact)
    ]
    if fixed[0] != fixed[1] or is_sound_shape(second.input_fact.shape) or first.guess.kind == "magnitudes":
        return None
    note = f"{second.name} is assumed to read the output of {first.name}, which has the same size"
    stages = [*first.guess.front, first.model_stage(), second.model_stage(), *second.guess.back]
    return Stages(stages, [note, *first.guess.notes])


def _sound_between(first: PairedModel, second: PairedModel) -> Stages | None:
    """Return the stages if the first outputs sound, directly or after its other stages; else None."""
    sound = is_sound_shape(first.output_fact.shape) and symbol_rate(first.output_fact) == symbol_rate(
        first.input_fact
    )
    if not first.guess.back and not (first.guess.kind == "sound" and sound):
        return None
    note = f"{second.name} is assumed to read the audio that {first.name} outputs"
    later_stages = [_rename_wires(stage, "_2") for stage in second.all_stages]
    return Stages([*first.all_stages, *later_stages], [note, *first.guess.notes, *second.guess.notes])


def _rename_wires(stage: str, suffix: str) -> str:
    for name in ("spectrum", "mask", "features"):
        stage = stage.replace(f'"{name}"', f'"{name}{suffix}"')
    return stage
