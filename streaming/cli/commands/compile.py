"""pulse compile: a model's program, written to a file."""

from pathlib import Path

from streaming.cli import options
from streaming.cli.options import ModelOptions, ReportOptions, RoundingOptions, option, takes_groups
from streaming.cli.proof_options import ProofOptions, require_proof


@takes_groups
def compile(
    model: options.ModelPath = None,
    *,
    model_options: ModelOptions,
    output: Path | None = option(
        "File to write, which must end in .pulse. Default: the name of the model, in the current folder.",
        "--output",
        "-o",
        metavar="FILE",
    ),
    rounding: RoundingOptions,
    specialise: bool = option(
        "Compile machine code for the shapes of this program; it is used if it makes a step at least 1.1 times "
        "as fast (--min-gain). Takes some seconds; the code is stored in this machine's folder of kernels, and "
        "the file only requests it.",
        "--specialise",
        default=False,
    ),
    min_gain: float | None = option(
        "With --specialise: the minimum speed-up of a step for which the code is used. Default: 1.1.",
        metavar="TIMES",
    ),
    check: bool = option(
        "Compare the program with the offline model, as pulse check does. The file stores the outcome.",
        "--check/--no-check",
        default=True,
    ),
    proof: ProofOptions,
    report_options: ReportOptions,
) -> None:
    """Write the program of a model to a file that starts at once; run, check, bench, build and serve take it.

    The file has the instructions, the weights, the inputs and outputs, and the proof, but not the model.
    Files from others are safe to open: nothing in them runs before every instruction is checked.

    Exit code 1, and no file, if the results differ from the offline model; 3 if nothing was proved for some output.

    Examples:
      pulse compile model.onnx --pulse 160 -o model.pulse
      pulse run model.pulse in.wav out.wav
      pulse compile recipe.toml -o denoise.pulse   audio to audio, with the recipe's other stages
      pulse compile model.onnx --weights int8 -o small.pulse
      pulse compile model.onnx --specialise -o fast.pulse   code for these shapes, on this machine
    """
    from pulse.errors import InputError
    from pulse.support.wording import spell
    from streaming.cli.model_opening import open_model
    from streaming.files.atomic import refuse_same
    from streaming.reports.compilation import compile_to_file

    opened = open_model(model, model_options)
    if min_gain is not None and not specialise:
        raise InputError(f"{spell('min_gain', min_gain)}: give {spell('specialise', True)} too")
    if opened.model.program is not None:
        raise InputError(f"{model}: is already a program; give the model to compile it otherwise")
    path = output or Path(f"{opened.title}.pulse")
    refuse_same([model], [path])
    program = opened.compile("numba", rounding)
    specialisation = program.specialise(min_gain=min_gain) if specialise else None
    choice = proof.choice() if check else None
    report = compile_to_file(opened, program, path, choice, specialisation)
    report_options.print(report)
    if report.proof is not None:
        require_proof(report.proof, f"; {path} is not written (--no-check writes it unproved)")
