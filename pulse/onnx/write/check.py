"""The proof that an exported file, run pulse by pulse in another runtime, gives what the offline model gives."""

from collections.abc import Sequence

from onnx import ModelProto

from pulse.onnx.write.runtime import Run, RuntimeProgram
from pulse.oracle import oracle_of
from pulse.proof import ProofReport, compare
from pulse.pulsify.network import PulsedNetwork
from pulse.typed import TypedNetwork


def check(
    proto: ModelProto,
    model: PulsedNetwork,
    typed: TypedNetwork | None = None,
    lengths: Sequence[int] | None = None,
    seed: int = 0,
    long: bool = False,
    run: Run | None = None,
) -> ProofReport:
    """Run streams through a file that ``to_onnx`` made of ``model``, as ``pulse.proof.prove`` does.

    typed    the offline model; see ``oracle_of``
    run      one call of a runtime; by default onnxruntime, or onnx's evaluator
    Raises   PulsifyError: no length can be run
    """
    program = RuntimeProgram(model, proto, run)
    return compare(model, oracle_of(model, typed), [program], lengths, seed, long)
