"""The check that an exported file, run pulse by pulse in another runtime, equals the offline model."""

from dataclasses import replace

from onnx import ModelProto

from pulse.proof import ProofChoice, ProofReport, prove_programs
from pulse.proof.oracle import pulsed_oracle
from pulse.proof.original import Original
from pulse.pulsify.network import PulsedNetwork
from pulse.runtimes.onnx_runtimes import EVALUATOR, RunModel, RuntimeProgram, evaluator
from pulse.typed import TypedNetwork


def check_onnx(
    proto: ModelProto,
    model: PulsedNetwork,
    typed: TypedNetwork | None = None,
    choice: ProofChoice = ProofChoice(),
    run: RunModel | None = None,
    original: Original | None = None,
) -> ProofReport:
    """Run streams through a file that ``to_onnx`` made of ``model``, as ``pulse.proof.prove`` does.

    typed     the offline model; see ``pulsed_oracle``
    choice    which streams
    run       one call of a runtime; by default onnxruntime, or onnx's evaluator
    original  see ``pulse.proof.prove``
    Raises    PulsifyError: no length can be run

    A runtime may compute an operator less exactly than its type allows: onnxruntime's Sigmoid is off by 1.7e-7, which
    is more than all of a small probability. So a file that differs there is tried in onnx's evaluator too. If it is
    equal there, the file is right, and the report has the difference as ``rejected``. If onnxruntime has no kernel for
    a node, the file is tried only in onnx's evaluator, and the report has the reason as ``load_error``.
    """
    oracle = pulsed_oracle(model, typed)

    def prove_in(program: RuntimeProgram) -> ProofReport:
        return prove_programs(model, oracle, [program], choice, original)

    program = RuntimeProgram(model, proto, run)
    report = replace(prove_in(program), load_error=program.load_error)
    if report.divergence is None or run is not None or program.backend == EVALUATOR:
        return report
    again = prove_in(RuntimeProgram(model, proto, evaluator(proto), EVALUATOR))
    return replace(again, rejected=report.divergence) if again.equal else report
