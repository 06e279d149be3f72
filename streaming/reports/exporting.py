"""Write a pulsed model to a file, and prove that it works in another runtime."""

from pathlib import Path
from typing import Any

from pulse.errors import InputError, file_errors
from pulse.loading.proving import prove_file
from pulse.models import PulsedModel
from pulse.nnef.archive import ARCHIVES, Archive
from pulse.onnx.proto import ModelProto
from pulse.onnx.write.model import to_onnx
from pulse.proof import ProofChoice
from pulse.runtimes.nnef_check import check_nnef
from pulse.runtimes.tract import has_tract
from pulse.support.record import record
from pulse.support.report import byte_size
from pulse.support.wording import count_of, spell
from streaming.files.atomic import complete_file, complete_folder, kind_of, publish, scratch_file
from streaming.opening.opened_model import OpenedModel
from streaming.reports.timed_proof import TimedProof, time_proof


@record
class ExportedFile:
    """A file that was written.

    path     the path of the file; None if it differs from the offline model and was not written
    opset    the opset of ONNX; None for NNEF
    nodes    the number of nodes of ONNX, or assignments of NNEF
    states   tensors that carry state
    nbytes   size of the file
    proof    None if the user disabled it, or there is no runtime for it
    """

    path: Path | None
    opset: int | None
    nodes: int
    states: int
    nbytes: int
    proof: TimedProof | None

    def pairs(self) -> list[tuple[str, str]]:
        """Return names and texts."""
        format_text = "NNEF" if self.opset is None else f"opset {self.opset}"
        counts = f"{count_of(self.nodes, 'node')}, {count_of(self.states, 'state')}"
        description = f"{format_text}, {counts}, {byte_size(self.nbytes)}"
        missing = (
            spell("check", False)
            if self.opset is not None or has_tract()
            else "pip install 'pulse-stream[tract]'"
        )
        proof = [("proof", f"none ({missing})")] if self.proof is None else self.proof.pairs()
        return [written_pair(self.path, description), *proof]

    def as_dict(self) -> dict[str, Any]:
        """Return the report, for JSON."""
        return {
            "path": self.path,
            "opset": self.opset,
            "nodes": self.nodes,
            "states": self.states,
            "bytes": self.nbytes,
            "proof": self.proof,
        }


def written_pair(
    path: Path | None, description: str, outcome: str = "its outputs differ from the offline model's"
) -> tuple[str, str]:
    """Return the line of a report about a file; ``path`` is None if its proof failed and it was not written."""
    return ("written", f"{path}: {description}") if path else ("not written", f"{description}: {outcome}")


def export(
    opened: OpenedModel, pulsed: PulsedModel, path: Path, opset: int, choice: ProofChoice | None
) -> ExportedFile:
    """Write the file, prove it, and only then publish it; no file appears if it differs from the offline model.

    choice   the streams of the proof; None for no proof
    Raises   WriteError: an op cannot be written; InputError: an unknown suffix, a folder that cannot be written to,
             NNEF that exists already
    """
    if is_nnef(path):
        return _export_nnef(opened, pulsed, path, choice)
    if path.suffix.lower() != ".onnx":
        raise InputError(f"{path}: a model is written as .onnx, .nnef or .nnef.tgz, not {kind_of(path)}")
    with scratch_file(path) as part:
        proto = to_onnx(pulsed, opset, opened.rate_metadata)
        with file_errors(path, "written", InputError):
            part.write_bytes(proto.SerializeToString())
        proof = prove_export(opened, pulsed, proto, choice)
        nbytes = part.stat().st_size
        is_proved = proof is None or proof.proof.equal
        if is_proved:
            publish(part, path)
    states = len(proto.graph.output) - len(pulsed.outputs)
    return ExportedFile(path if is_proved else None, opset, len(proto.graph.node), states, nbytes, proof)


def prove_export(
    opened: OpenedModel, pulsed: PulsedModel, proto: ModelProto, choice: ProofChoice | None
) -> TimedProof | None:
    """Prove an ONNX model; None for no proof."""
    if choice is None:
        return None
    return time_proof(lambda: prove_file(opened.model, pulsed, proto, choice))


def is_nnef(path: Path) -> bool:
    """Return whether a name is one of NNEF, as a folder or an archive."""
    return path.name.lower().endswith((".nnef", *ARCHIVES))


def _export_nnef(
    opened: OpenedModel, pulsed: PulsedModel, path: Path, choice: ProofChoice | None
) -> ExportedFile:
    archive = pulsed.to_nnef()
    proof = None
    if choice is not None and has_tract():
        typed = opened.model.analyse(pulsed.pulse)
        proof = time_proof(lambda: check_nnef(archive, pulsed, typed, choice))
    is_proved = proof is None or proof.proof.equal
    if is_proved:
        save_nnef(archive, path)
    nbytes = sum(map(len, archive.files().values()))
    return ExportedFile(path if is_proved else None, None, archive.assignments, archive.states, nbytes, proof)


def save_nnef(archive: Archive, path: Path) -> None:
    """Write all files under a temporary name first. Raises InputError: a folder has this name, or the check fails."""
    if path.name.lower().endswith(ARCHIVES):
        with complete_file(path) as part:
            archive.save(part)
        return
    if path.exists():
        raise InputError(f"{path}: already exists; remove it, or give another name")
    with complete_folder(path) as part:
        archive.save(part)
