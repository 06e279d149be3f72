"""The proof that a program file states of itself."""

from typing import Any

from pulse.program.file.stored_program import StoredProgram
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Text, byte_size
from streaming.reports.opened_model import OpenedModel, backend_text

UNPROVED = "nothing was proved when it was compiled (--no-check): compile the model again, or check the model"


@record
class StoredProof(Report):
    """A program, and the proof made when it was compiled."""

    opened: OpenedModel
    program: StoredProgram

    @property
    def outcome(self) -> str:
        """``equal`` or ``not proved``."""
        return "not proved" if self.program.proof is None else self.program.proof.outcome

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        return UNPROVED if self.program.proof is None else self.program.proof.verdict

    def sections(self) -> list[Section]:
        """The ports, the stated proof, and what only the model can show."""
        program, model = self.program, self.program.model
        pairs = [("model", f"{self.opened.title}, {backend_text(program)}"), *self.opened.pairs(model)]
        pairs += self.opened.delay_pairs(model)
        pairs.append(("state", byte_size(program.state_bytes)))
        pairs.append(("file", f"checksum right, {program.rows} rows that stay inside of their memory"))
        pairs += [] if program.proof is None else program.proof.pairs()
        hint = "the file does not contain the model: to run the proof again, give pulse check the model"
        verdict = [Text(self.verdict, "bold green")] if self.outcome == "equal" else []
        return [Pairs(pairs), Text(hint), *verdict]

    def values(self) -> dict[str, Any]:
        """The values of the report, for JSON."""
        return {
            **self.opened.as_dict(self.program.model),
            "rows": self.program.rows,
            "state_bytes": self.program.state_bytes,
            "weights": self.program.form,
            "activations": self.program.activations,
            "outcome": self.outcome,
            "proof": self.program.proof,
        }
