"""The proof of a loaded model: compare it with its offline model, or else with its own loop or stream."""

from typing import TYPE_CHECKING

from pulse.loading.loaded_model import LoadedModel
from pulse.models import PulsedModel
from pulse.program.backends.registry import Prepare
from pulse.proof import ProofChoice, ProofReport, prove
from pulse.proof.oracle import pulsed_oracle

if TYPE_CHECKING:
    from onnx import ModelProto


def prove_model(
    model: LoadedModel,
    pulsed: PulsedModel,
    choice: ProofChoice,
    backend: str,
    prepare: Prepare | None,
) -> ProofReport:
    """Prove a pulsed model against its offline model; see ``pulse.proof.prove`` for the arguments and errors."""
    original = model.analyse(pulsed.pulse)
    oracle = pulsed_oracle(pulsed, original)
    return prove(
        model=pulsed,
        oracle=oracle,
        choice=choice,
        backend=backend,
        prepare=prepare,
        original=model.original,
    )


def prove_file(
    model: LoadedModel, pulsed: PulsedModel, proto: "ModelProto", choice: ProofChoice
) -> ProofReport:
    """Return the proof of a file written from the pulsed model, run in another runtime; see ``prove`` for errors."""
    from pulse.runtimes.onnx_check import check_onnx

    return check_onnx(
        proto=proto,
        model=pulsed,
        typed=model.analyse(pulsed.pulse),
        choice=choice,
        original=model.original,
    )
