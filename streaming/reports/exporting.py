"""Writing a pulsed model to a file of its own, and the proof that it works there."""

from pathlib import Path
from typing import Any

from pulse.errors import InputError
from pulse.loading.proving import prove_file
from pulse.models import PulsedModel
from pulse.onnx.write.model import to_onnx
from pulse.record import record
from pulse.report import byte_size
from streaming.atomic_files import kind_of, publish, temporary_file
from streaming.reports.opened_model import OpenedModel
from streaming.reports.timed_proof import ProofChoice, TimedProof, time_proof


@record
class Exported:
    """A file that was written.

    path     None if it differs from the offline model: then there is no file
    states   inputs that carry state
    proof    None if the user did not want it
    """

    path: Path | None
    opset: int
    nodes: int
    states: int
    nbytes: int
    proof: TimedProof | None

    def pairs(self) -> list[tuple[str, str]]:
        """Names and texts."""
        description = (
            f"opset {self.opset}, {self.nodes} nodes, {self.states} states, {byte_size(self.nbytes)}"
        )
        description = (
            f"{self.path}: {description}" if self.path else f"nothing: the file of {description} is wrong"
        )
        proof = [("proof", "none (--no-check)")] if self.proof is None else self.proof.pairs()
        return [("written", description), *proof]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "path": self.path,
            "opset": self.opset,
            "nodes": self.nodes,
            "states": self.states,
            "bytes": self.nbytes,
            "proof": self.proof,
        }


def export(
    opened: OpenedModel, pulsed: PulsedModel, path: Path, opset: int, choice: ProofChoice | None
) -> Exported:
    """Write the file, prove it, and only then give it its name; where it differs from the offline model there is none.

    choice   which streams are tried; None: no proof
    Raises   WriteError; InputError: a name that does not end in .onnx, a folder that refuses
    """
    if path.suffix.lower() != ".onnx":
        raise InputError(f"{path}: a model is written as .onnx, not {kind_of(path)}")
    part = temporary_file(path)
    known = opened.rate_hz is not None and opened.rate_from != "default"
    try:
        proto = to_onnx(pulsed, opset, {"sample_rate": str(opened.rate_hz)} if known else None)
        try:
            part.write_bytes(proto.SerializeToString())
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error
        proof = None
        if choice is not None:
            tried = choice.lengths, choice.seed, choice.long
            proof = time_proof(lambda: prove_file(opened.model, pulsed, proto, *tried))
        nbytes = part.stat().st_size
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    states = len(proto.graph.output) - len(pulsed.outputs)
    good = proof is None or proof.proof.equal
    if good:
        publish(part, path)
    else:
        part.unlink()
    return Exported(path if good else None, opset, len(proto.graph.node), states, nbytes, proof)
