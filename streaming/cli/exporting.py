"""Writing a pulsed model to a file of its own, and the proof that it works there."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streaming.atomic_files import publish, temporary_file
from streaming.cli.console import size
from streaming.cli.proof import ProofOptions, Spent, proof_dict, proof_lines, timed

if TYPE_CHECKING:
    from pulse.models import PulsedModel
    from pulse.proof import Report
    from streaming.cli.model import Opened


@dataclass(frozen=True)
class Exported:
    """A file that was written.

    path     None where it differs from the offline model: then there is no file
    states   inputs that carry state
    report   what was proved; None where the user did not want it
    """

    path: Path | None
    opset: int
    nodes: int
    states: int
    nbytes: int
    report: "Report | None"
    spent: Spent

    def pairs(self) -> list[tuple[str, str]]:
        """Names and texts."""
        told = f"opset {self.opset}, {self.nodes} nodes, {self.states} states, {size(self.nbytes)}"
        told = f"{self.path}: {told}" if self.path else f"nothing: the file of {told} is wrong"
        proof = (
            [("proof", "none (--no-check)")] if self.report is None else proof_lines(self.report, self.spent)
        )
        return [("written", told), *proof]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "path": None if self.path is None else str(self.path),
            "opset": self.opset,
            "nodes": self.nodes,
            "states": self.states,
            "bytes": self.nbytes,
            "proof": None if self.report is None else proof_dict(self.report, self.spent),
        }


def export(
    opened: "Opened", pulsed: "PulsedModel", path: Path, opset: int, proof: ProofOptions | None
) -> Exported:
    """Write the file, prove it, and only then give it its name; where it differs from the offline model there is none.

    proof    which streams are tried; none at all where it is None
    Raises   WriteError; InputError: a name that does not end in .onnx, a folder that refuses
    """
    from pulse.errors import InputError
    from pulse.loading.proving import prove_file
    from pulse.onnx.write.model import to_onnx

    if path.suffix.lower() != ".onnx":
        raise InputError(f"{path}: a model is written as .onnx, not {path.suffix or 'this'}")
    part = temporary_file(path)
    known = opened.rate_hz is not None and opened.rate_from != "default"
    try:
        proto = to_onnx(pulsed, opset, {"sample_rate": str(opened.rate_hz)} if known else None)
        try:
            part.write_bytes(proto.SerializeToString())
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error
        report = None
        with timed() as spent:
            if proof is not None:
                report = prove_file(opened.model, pulsed, proto, proof.length or None, proof.seed, proof.long)
        nbytes = part.stat().st_size
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    states = len(proto.graph.output) - len(pulsed.outputs)
    good = report is None or report.equal
    if good:
        publish(part, path)
    else:
        part.unlink()
    return Exported(path if good else None, opset, len(proto.graph.node), states, nbytes, report, spent)
