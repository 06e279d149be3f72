"""Write an offline model as NNEF, and prove that it works in tract."""

from pathlib import Path
from typing import Any

from pulse.errors import NotProvedError
from pulse.proof import ProofChoice
from pulse.runtimes.nnef_check import OfflineProof, check_offline
from pulse.runtimes.tract import has_tract
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, byte_size
from pulse.support.wording import count_of, spell
from streaming.opening.opened_model import OpenedModel
from streaming.reports.exporting import save_nnef, written_pair


@record
class ExportedOffline(Report):
    """An archive of an offline model that was written.

    title    name of the model
    path     the path of the file; None if it was not written: it differs from the model, or the proof failed
    nodes    the number of nodes
    nbytes   size of the file
    proof    None if there is none
    reason   why there is no proof
    skipped  whether no proof was tried
    """

    title: str
    path: Path | None
    nodes: int
    nbytes: int
    proof: OfflineProof | None
    reason: str = ""
    skipped: bool = False

    @property
    def outcome(self) -> str:
        """The outcome, in the terms of a proof of a stream."""
        return "not proved" if self.proof is None else "diverged" if self.proof.divergence else "equal"

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.proof is None:
            return self.reason
        return self.proof.divergence or f"equal in tract, at {count_of(len(self.proof.lengths), 'length')}"

    def sections(self) -> list[Section]:
        """Return names and texts."""
        format_text = f"NNEF of the offline model, {count_of(self.nodes, 'node')}, {byte_size(self.nbytes)}"
        written = written_pair(self.path, format_text, self.outcome)
        return [Pairs([("model", self.title), written, ("proof", self.verdict)])]

    def values(self) -> dict[str, Any]:
        lengths = [] if self.proof is None else [*self.proof.lengths]
        return {
            "model": self.title,
            "path": self.path,
            "nodes": self.nodes,
            "bytes": self.nbytes,
            "outcome": self.outcome,
            "verdict": self.verdict,
            "lengths": lengths,
        }


def export_offline(opened: OpenedModel, path: Path, choice: ProofChoice | None) -> ExportedOffline:
    """Write the decluttered model as NNEF, prove it in tract, and only then publish it.

    choice   the lengths of the proof; None for no proof
    Raises   WriteError: an op cannot be written; InputError: a folder of this name exists, or cannot be written
    """
    archive = opened.decluttered_model.to_nnef()
    proof, reason, skipped = None, "", choice is None or not has_tract()
    if choice is None:
        reason = f"none ({spell('check', False)})"
    elif skipped:
        reason = "none (pip install 'pulse-stream[tract]')"
    else:
        try:
            proof = check_offline(archive, opened.decluttered_model, choice.lengths, choice.seed)
        except NotProvedError as error:
            reason = str(error)
    is_proved = skipped or (proof is not None and proof.divergence is None)
    if is_proved:
        save_nnef(archive, path)
    nbytes = sum(map(len, archive.files().values()))
    return ExportedOffline(
        opened.title, path if is_proved else None, archive.assignments, nbytes, proof, reason, skipped
    )
