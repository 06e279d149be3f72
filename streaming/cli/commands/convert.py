"""pulse convert: show or write the pulsed form of a model."""

from pathlib import Path

from streaming.cli import options
from streaming.cli.options import ModelOptions, ReportOptions, option, takes_groups
from streaming.cli.proof_options import ProofOptions, require_outcome, require_proof


@takes_groups
def convert(
    model: options.ModelPath = None,
    *,
    model_options: ModelOptions,
    output: Path | None = option(
        "Write the pulsed model: .onnx with its states as inputs and outputs; .nnef (a folder) or .nnef.tgz "
        "for tract, without --pulse the offline model.",
        "--output",
        "-o",
        metavar="FILE",
    ),
    triton: Path | None = option(
        "Write the pulsed model into a Triton model repository: FOLDER/NAME/config.pbtxt and "
        "FOLDER/NAME/1/model.onnx, for its sequence batcher.",
        metavar="FOLDER",
    ),
    opset: int = option("ONNX opset of the written file.", metavar="N", default=17),
    check: bool = option(
        "Run the file pulse by pulse and compare it with the offline model, as pulse check does.",
        "--check/--no-check",
        default=True,
    ),
    proof: ProofOptions,
    report_options: ReportOptions,
) -> None:
    """Show the pulsed form of a model: ports, delays, buffers and nodes; or write it for other runtimes.

    Exit code 1, and no file, if the results of the file differ from the offline model; 3 if nothing was proved for some
    output.

    Examples:
      pulse convert                                      the built-in model
      pulse convert model.onnx --pulse 160
      pulse convert model.onnx --input "x=1,80,T,f32"    name the time axis
      pulse convert model.onnx --pulse 160 -o out.onnx   write it for onnxruntime and others
      pulse convert model.onnx --pulse 160 -o out.nnef   write it for tract
      pulse convert model.onnx --pulse 160 --triton repository
    """
    from pulse.errors import InputError
    from streaming.cli.model_opening import open_model
    from streaming.cli.recipe_files import files_of_model
    from streaming.files.atomic import refuse_same
    from streaming.reports.conversion_report import ConversionReport
    from streaming.reports.exporting import export, is_nnef
    from streaming.reports.exporting_offline import export_offline
    from streaming.reports.triton import export_triton

    if output is not None and triton is not None:
        raise InputError("--output and --triton: give one of them")
    refuse_same(files_of_model(model), [output])
    opened = open_model(model, model_options)
    if output is not None and model_options.pulse is None and is_nnef(output):
        exported = export_offline(opened, output, proof.choice() if check else None)
        report_options.print(exported)
        if not exported.skipped:
            require_outcome(exported.outcome, exported.verdict, f"; {output} is not written")
        return
    pulsed = opened.pulsify()
    report = None
    if output is not None:
        report = export(opened, pulsed, output, opset, proof.choice() if check else None)
    if triton is not None:
        report = export_triton(opened, pulsed, triton, opset, proof.choice() if check else None)
    report_options.print(ConversionReport(opened, pulsed, report))
    if report is not None and report.proof is not None:
        require_proof(report.proof, f"; {output or triton} is not written (--no-check writes it unproved)")
