"""pulse check: the proof that a stream equals the offline model."""

from streaming.cli import options
from streaming.cli.options import ModelOptions, ReportOptions, RoundingOptions, takes_groups
from streaming.cli.proof_options import ProofOptions, require_outcome, require_proof


@takes_groups
def check(
    model: options.ModelPath = None,
    *,
    model_options: ModelOptions,
    backend: str = options.BACKEND,
    rounding: RoundingOptions,
    proof: ProofOptions,
    report_options: ReportOptions,
) -> None:
    """Prove on random input that every streamed frame equals the offline one; else name the first wrong wire.

    Tries streams shorter than a pulse, of whole pulses, of other lengths, and long ones that fill the model's whole
    memory; with noise, quiet and loud, constant levels, bursts between zeros, and silence. The last pulse is padded
    with NaN, so that no result can depend on the padding. The tolerance follows from the rounding of the model's own
    arithmetic. A model that takes chunks and states is compared with one call for each chunk, its states passed on.
    For a program (.pulse) it shows the proof of pulse compile: to prove it again, give the model.
    The proof uses f32 weights. With --weights bf16 or int8 it also reports how these change the outputs, and with
    --activations int8 how both do.

    Exit code 1 if any frame differs, 3 if nothing was proved for some output, since it is constant or never finite.

    Examples:
      pulse check model.onnx --pulse 160
      pulse check model.onnx --pulse 160 --length 1 --length 48000
      pulse check model.onnx --long --seed 7
    """
    from streaming.cli.model_opening import open_model
    from streaming.reports.check_report import StoredProof, check_model

    opened = open_model(model, model_options)
    if opened.model.program is not None:
        opened.compile(backend, rounding)
        proof_of_file = StoredProof(opened, opened.model.program)
        report_options.print(proof_of_file)
        require_outcome(proof_of_file.outcome, proof_of_file.verdict)
        return
    pulsed = opened.pulsify()
    checked = check_model(opened, pulsed, proof.choice(), backend, rounding)
    report_options.print(checked)
    require_proof(checked.proof)
