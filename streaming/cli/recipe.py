"""pulse recipe: a first recipe of a model."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli import options
from streaming.cli.console import print_json, print_note


def recipe(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it there: .toml.", show_default=False),
    ] = None,
    json: options.AsJson = False,
) -> None:
    """Write a first recipe of a model: what is in front of it and behind it, as far as its sizes tell.

    257 frequencies with real and imaginary parts are an STFT, 80 bands a filter bank, 400 five frames of 80. What is
    guessed is said on standard error, one line each: the hop, the window, the rate. Look at them, then try
    pulse run RECIPE in.wav out.wav. docs/recipes.md has the format.

    [bold]Examples[/bold]

      [cyan]pulse recipe model.onnx[/cyan]                   on standard output, to stand beside the model

      [cyan]pulse recipe model.onnx -o model.toml[/cyan]
    """
    from pulse.errors import InputError
    from pulse.recipes.proposal import proposed
    from streaming.replacing import part_of, publish, unwritable
    from streaming.terminal import write_text

    if output is not None and output.suffix.lower() != ".toml":
        raise InputError(f"{output}: a recipe is written as .toml, not {output.suffix or 'this'}")
    if output is not None and output.exists():
        raise InputError(f"{output}: is there already; move it away, or give another name")
    found = proposed(model, model.parent if output is None else output.parent)
    if output is not None:
        part = part_of(output)
        try:
            part.write_text(found.text, encoding="utf-8")
        except OSError as error:
            part.unlink(missing_ok=True)
            raise unwritable(output, error.strerror) from error
        publish(part, output)
    if json:
        print_json(
            {
                "recipe": found.text,
                "notes": list(found.notes),
                "written": None if output is None else str(output),
            }
        )
        return
    for note in found.notes:
        print_note(note)
    if output is None:
        write_text(found.text)
