"""pulse compile: a model's program, written to a file."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli import options
from streaming.cli.options import ModelOptions, ReportOptions, takes_groups
from streaming.cli.proof import ProofOptions, require_proof


@takes_groups
def compile(
    model: options.ModelPath = None,
    *,
    model_options: ModelOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write it: a name that ends in .pulse; that of the model in this folder by default.",
            show_default=False,
        ),
    ] = None,
    weights: options.Weights = None,
    activations: options.Activations = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Compare what is written with the offline model, as pulse check does. The file tells the outcome.",
        ),
    ] = True,
    proof: ProofOptions,
    shown: ReportOptions,
) -> None:
    """Write the program of a model to a file, which starts at once; every command takes it in place of the model.

    The file has the instructions, the weights, the inputs and outputs, and what was proved. It does not have the model.
    It is safe to open one from a stranger: nothing in it is run before every instruction is checked.

    Exit code 1, and no file, if it does not give what the offline model gives; 3 if nothing was proved of some output.

    Examples:
      pulse compile model.onnx --pulse 160 -o model.pulse
      pulse run model.pulse in.wav out.wav
      pulse compile recipe.toml -o denoise.pulse   sound to sound, with what is in front and behind
      pulse compile model.onnx --weights int8 -o small.pulse
    """
    from pulse.errors import InputError
    from streaming.atomic_files import refuse_same
    from streaming.cli.model import kernel_preparation, open_model
    from streaming.reports.compilation import compile_to_file

    opened = open_model(model, model_options)
    if opened.model.program is not None:
        raise InputError(f"{model}: is a program already; give the model to compile it otherwise")
    path = output or Path(f"{opened.title}.pulse")
    refuse_same([model], [path])
    pulsed = opened.pulsify(model_options.pulse)
    program = pulsed.compile("numba", weights or "f32", kernel_preparation(), activations or "f32")
    report = compile_to_file(opened, program, path, proof.choice() if check else None, kernel_preparation())
    shown.print(report)
    if report.proof is not None:
        require_proof(report.proof, f"; {path} is not written (--no-check writes it unproved)")
