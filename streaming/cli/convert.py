"""pulse convert: what a model becomes."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli import options
from streaming.cli.options import ModelOptions, ReportOptions, takes_groups
from streaming.cli.proof import ProofOptions, require_proof


@takes_groups
def convert(
    model: options.ModelPath = None,
    *,
    given: ModelOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the pulsed model as standard ONNX, with its states as inputs and outputs.",
            show_default=False,
        ),
    ] = None,
    opset: Annotated[int, typer.Option("--opset", help="ONNX opset of the written file.")] = 17,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Run the file pulse by pulse and compare it with the offline model, as pulse check does.",
        ),
    ] = True,
    proof: ProofOptions,
    shown: ReportOptions,
) -> None:
    """Show the pulsed form of a model: ports, delays, buffers and nodes; or write it as ONNX for any runtime.

    Exit code 1, and no file, if the written one does not give what the offline model gives; 3 if nothing was proved of
    some output.

    [bold]Examples[/bold]

      [cyan]pulse convert[/cyan]                                     the built-in model

      [cyan]pulse convert model.onnx --pulse 160[/cyan]

      [cyan]pulse convert model.onnx --input "x=1,80,T,f32"[/cyan]   name the time axis

      [cyan]pulse convert model.onnx --pulse 160 -o out.onnx[/cyan]  write it for onnxruntime and others
    """
    from streaming.cli.model import open_model
    from streaming.reports.conversion import Conversion
    from streaming.reports.exporting import export

    opened = open_model(model, given)
    pulsed = opened.pulsed(given.pulse)
    written = None
    if output is not None:
        written = export(opened, pulsed, output, opset, proof.choice() if check else None)
    shown.print(Conversion(opened, pulsed, written))
    if written is not None and written.proof is not None:
        require_proof(written.proof, f"; {output} is not written (--no-check writes it unproved)")
