"""The check that a stream equals the offline model, and what rounded weights change."""

from collections.abc import Sequence
from typing import Any

from pulse.accuracy import RoundingLoss, rounding_losses
from pulse.loading.proving import prove_model
from pulse.models import PulsedModel
from pulse.program.file.stored_program import StoredProgram
from pulse.proof import ProofChoice
from pulse.rounding import Rounding
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Text, byte_size
from pulse.support.wording import count_of, spell
from streaming.compilation.preparation import kernel_preparation
from streaming.opening.opened_model import OpenedModel
from streaming.reports.timed_proof import TimedProof, time_proof


@record
class CheckReport(Report):
    """The result of ``check_model``.

    opened, pulsed  what was proved
    proof     the proof with f32 weights
    rounding  the forms to which weights and activations are rounded for ``errors``
    errors    the errors of rounded weights, by output
    """

    opened: OpenedModel
    pulsed: PulsedModel
    proof: TimedProof
    rounding: Rounding
    errors: Sequence[RoundingLoss]

    @property
    def state_bytes(self) -> int:
        """The bytes of a stream's state."""
        return sum(count for _, _, count in self.pulsed.buffers())

    def sections(self) -> list[Section]:
        """Return delays, receptive fields, the proof and its verdict."""
        opened, pulsed = self.opened, self.pulsed
        pairs = [("model", opened.title), *opened.pairs(pulsed), *opened.delay_pairs(pulsed)]
        pairs += [
            (f"{name} sees", opened.receptive_text(field)) for name, field in pulsed.receptive_fields.items()
        ]
        pairs += [("state", byte_size(self.state_bytes)), *self.proof.pairs()]
        form, activation_form = self.rounding.form, self.rounding.activation_form
        rounded = form if activation_form is None else f"{form} weights and activations"
        pairs += [(f"{error.output} in {rounded}", str(error)) for error in self.errors]
        return [Pairs(pairs), *self.proof.verdict()]

    def values(self) -> dict[str, Any]:
        return {
            **self.opened.as_dict(self.pulsed),
            "receptive_fields": {
                name: {"frames": field.frames, "ahead_frames": field.ahead}
                for name, field in self.pulsed.receptive_fields.items()
            },
            "state_bytes": self.state_bytes,
            "proof": self.proof,
            "weights": self.rounding.form,
            "activations": self.rounding.activation_form or "f32",
            "weight_errors": {
                error.output: {"largest": error.largest, "snr_db": error.snr_db} for error in self.errors
            },
        }


def check_model(
    opened: OpenedModel,
    pulsed: PulsedModel,
    choice: ProofChoice,
    backend: str,
    rounding: Rounding,
) -> CheckReport:
    """Verify a model in pulses; the arguments are those of ``pulse.proof.prove``.

    Raises PulsifyError: the model cannot be pulsified
    """
    rounding.check()
    prepare = kernel_preparation()
    proof = time_proof(lambda: prove_model(opened.model, pulsed, choice, backend, prepare))
    errors: list[RoundingLoss] = []
    if rounding.form != "f32":
        errors = rounding_losses(
            pulsed,
            rounding.form,
            proof.proof.lengths[-1],
            backend=backend,
            seed=choice.seed,
            prepare=prepare,
            activations=rounding.activations,
        )
    return CheckReport(opened, pulsed, proof, rounding, errors)


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
        if self.program.proof is not None:
            return self.program.proof.verdict
        return (
            f"nothing was proved when it was compiled ({spell('check', False)}): compile the model again, or check "
            "the model"
        )

    def sections(self) -> list[Section]:
        """Return the ports, the stated proof, and what only the model can show."""
        program = self.program
        pairs = self.opened.program_pairs(program)
        pairs.append(("state", byte_size(program.state_bytes)))
        pairs.append(
            (
                "file",
                f"checksum right, {count_of(program.row_count, 'instruction')}, none of which leaves its memory",
            )
        )
        pairs += [] if program.proof is None else program.proof.pairs()
        advice = "the file does not contain the model: to run the proof again, give pulse check the model"
        verdict = [Text(self.verdict, "bold green")] if self.outcome == "equal" else []
        return [Pairs(pairs), Text(advice), *verdict]

    def values(self) -> dict[str, Any]:
        return {
            **self.opened.as_dict(self.program.model),
            "rows": self.program.row_count,
            "state_bytes": self.program.state_bytes,
            "weights": self.program.form,
            "activations": self.program.activations,
            "outcome": self.outcome,
            "proof": self.program.proof,
        }
