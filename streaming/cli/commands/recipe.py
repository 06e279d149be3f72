"""pulse recipe: a proposed recipe for a model."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.console import print_json, print_note
from streaming.cli.options import option, takes_groups


@takes_groups
def recipe(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL [SECOND]",
            help="A model file, or two if the second takes the output of the first; with --embed also a recipe.",
        ),
    ],
    output: Path | None = option("Write the recipe to this .toml file.", "--output", "-o", metavar="FILE"),
    hop: int | None = option(
        "Samples from one frame to the next, if you know it; for a model whose calls take and return the same "
        "number of samples, that number is the frame size.",
        metavar="SAMPLES",
        min=1,
    ),
    channels: int | None = option(
        "The channels of audio, if the second axis of the input has one entry for each: a 2 there is otherwise taken "
        "as real and imaginary parts.",
        metavar="COUNT",
        min=1,
    ),
    embed: Path | None = option(
        "Write the model to this .onnx file, with the recipe in its metadata.", metavar="FILE"
    ),
    json: bool = option("Print the recipe and its notes as JSON.", "--json", default=False),
) -> None:
    """Propose a recipe for a model: the stages before and after it, guessed from its sizes.

    257 frequencies with real and imaginary parts suggest an STFT, 80 values a filter bank, 400 values five frames of
    80. Guesses are printed to standard error, one line each: the hop, the window, the rate. Check them, then try
    pulse run RECIPE in.wav out.wav. See docs/recipes.md for the format.

    If the metadata of a model holds a recipe, this recipe is written.

    Examples:
      pulse recipe model.onnx                            to standard output, for a file in this folder
      pulse recipe model.onnx -o model.toml
      pulse recipe saved_model --hop 128 -o model.toml   calls take a frame every 128 samples
      pulse recipe stereo.onnx --channels 2              its input is [1, 2, ...], one entry for each channel
      pulse recipe first.onnx second.onnx                two models in a row, such as DTLN's
      pulse recipe model.toml --embed whole.onnx         the model of a recipe, with the recipe inside
    """
    from streaming.cli.recipe_files import describe_models, embed_in, refuse_bad_use, write_recipe
    from streaming.terminal.output import write_text

    refuse_bad_use(models, output, embed)
    target = output or embed
    text, notes, context = describe_models(models, Path() if target is None else target.parent, hop, channels)
    if embed is not None:
        embed_in(text, context, embed)
    elif output is not None:
        write_recipe(text, output)
    if json:
        print_json({"recipe": text, "notes": notes, "written": target})
        return
    for note in notes:
        print_note(note)
    if target is None:
        write_text(text)
