"""pulse check: the proof that a stream equals the offline model."""

from streaming.cli import options
from streaming.cli.options import ModelOptions, ReportOptions, takes_groups
from streaming.cli.proof import ProofOptions, require_outcome, require_proof


@takes_groups
def check(
    model: options.ModelPath = None,
    *,
    model_options: ModelOptions,
    backend: options.Backend = "numba",
    weights: options.Weights = None,
    activations: options.Activations = None,
    proof: ProofOptions,
    shown: ReportOptions,
) -> None:
    """Prove on random input that every streamed frame equals the offline one; else name the first bad wire.

    Tries streams shorter than a pulse, of whole pulses, of other lengths, and long ones that fill all that the model
    remembers; noise, quiet and loud, held levels, bursts between zeros, and silence. The last pulse is padded with NaN,
    so that no result can depend on it. The tolerance follows from the rounding of the model's own arithmetic.
    A model that takes chunks and states is compared with a call for each chunk, the states handed on.
    Of a program (.pulse) it shows what pulse compile has proved: to prove it again, give the model.
    The proof is of weights of f32. With --weights bf16 or int8 it tells as well what these change in the outputs, and
    with --activations int8 what both do.

    Exit code 1 if any frame differs, 3 if nothing was proved of some output: it is always the same, or never a number.

    Examples:
      pulse check model.onnx --pulse 160
      pulse check model.onnx --pulse 160 --length 1 --length 48000
      pulse check model.onnx --long --seed 7
    """
    from streaming.cli.model import kernel_preparation, open_model
    from streaming.reports.check import check_model
    from streaming.reports.stored_proof import StoredProof

    opened = open_model(model, model_options)
    if opened.model.program is not None:
        opened.compile(model_options.pulse, backend, weights, activations=activations)
        proof_of_file = StoredProof(opened, opened.model.program)
        shown.print(proof_of_file)
        require_outcome(proof_of_file.outcome, proof_of_file.verdict)
        return
    pulsed = opened.pulsify(model_options.pulse)
    rounding = weights or "f32", activations or "f32"
    checked = check_model(opened, pulsed, proof.choice(), backend, *rounding, kernel_preparation())
    shown.print(checked)
    require_proof(checked.proof)
