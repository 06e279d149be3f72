"""The proof of a loaded model: compare it with its offline model, or else with its own loop or stream."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulse.loading.loaded import Loaded
from pulse.models import PulsedModel
from pulse.program.compiler import Prepare
from pulse.proof import ProofReport, prove
from pulse.proof.oracle import oracle_of

if TYPE_CHECKING:
    from onnx import ModelProto


def prove_loaded(
    loaded: Loaded,
    pulsed: PulsedModel,
    lengths: Sequence[int] | None = None,
    backend: str = "numba",
    seed: int = 0,
    prepare: Prepare | None = None,
    long: bool = False,
) -> ProofReport:
    """Prove a pulsed model against its offline model; arguments as in ``pulse.proof.prove``. Raises PulsifyError."""
    original = loaded.with_pulse(pulsed.pulse).analyse()
    oracle = oracle_of(pulsed, original)
    return prove(
        model=pulsed,
        oracle=oracle,
        lengths=lengths,
        backend=backend,
        seed=seed,
        prepare=prepare,
        long=long,
        original=loaded.original,
    )


def prove_file(
    loaded: Loaded,
    pulsed: PulsedModel,
    proto: "ModelProto",
    lengths: Sequence[int] | None = None,
    seed: int = 0,
    long: bool = False,
) -> ProofReport:
    """Return the proof of a file written from the pulsed model, run in another runtime. Raises PulsifyError."""
    from pulse.runtimes.onnx_check import check

    return check(
        proto=proto,
        model=pulsed,
        typed=loaded.with_pulse(pulsed.pulse).analyse(),
        lengths=lengths,
        seed=seed,
        long=long,
        original=loaded.original,
    )
