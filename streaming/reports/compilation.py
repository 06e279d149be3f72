"""Write the program of a model to a file, and prove that it computes the same as the model."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulse.accuracy import rounding_losses
from pulse.errors import InputError
from pulse.program.backends.reference import ReferenceProgram
from pulse.program.file.program_file import write_file
from pulse.program.file.proof_note import ProofNote
from pulse.program.file.stored_program import read_program
from pulse.program.native.native_program import NativeProgram
from pulse.program.program import Program
from pulse.program.specialise.outcome import Specialisation
from pulse.proof import ProofChoice, ProofReport
from pulse.proof.oracle import pulsed_oracle
from pulse.proof.prover import prove_programs
from pulse.pulsify.network import PulsedNetwork
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, byte_size
from pulse.support.wording import count_of, spell
from pulse.version import __version__
from streaming.compilation.preparation import kernel_preparation
from streaming.files.atomic import kind_of, require_replaceable
from streaming.opening.opened_model import OpenedModel
from streaming.reports.exporting import written_pair
from streaming.reports.timed_proof import TimedProof, time_proof

SUFFIX = ".pulse"
EXACT, ROUNDED = "the file", "weights of f32"


@record
class Compilation(Report):
    """A program that was written.

    opened, program  what was compiled
    path      the path of the file; None if the program differs from the offline model and was not written
    nbytes    size of the file
    proof     None if the user disabled it
    rounding  the errors of rounded weights, by output
    specialisation   the effect of specialised kernels; None if the user did not request them
    """

    opened: OpenedModel
    program: NativeProgram
    path: Path | None
    nbytes: int
    proof: TimedProof | None
    rounding: tuple[str, ...] = ()
    specialisation: Specialisation | None = None

    def sections(self) -> list[Section]:
        """Return the written file, and the proof."""
        program = self.program
        pairs = self.opened.program_pairs(program)
        size = f"{count_of(program.row_count, 'instruction')}, {byte_size(self.nbytes)}"
        pairs.append(written_pair(self.path, size))
        if self.specialisation is not None:
            pairs.append(("specialised kernels", str(self.specialisation)))
        if self.proof is None:
            return [Pairs([*pairs, ("proof", f"none ({spell('check', False)})")])]
        pairs += [*self.proof.pairs(), *(("rounded", text) for text in self.rounding)]
        return [Pairs(pairs), *self.proof.verdict()]

    def values(self) -> dict[str, Any]:
        return {
            **self.opened.as_dict(self.program.model),
            "path": self.path,
            "rows": self.program.row_count,
            "bytes": self.nbytes,
            "weights": self.program.form,
            "activations": self.program.activations,
            "proof": self.proof,
            "rounding": self.rounding,
            "specialisation": self.specialisation,
        }


def compile_to_file(
    opened: OpenedModel,
    program: Program,
    path: Path,
    choice: ProofChoice | None,
    specialisation: Specialisation | None,
) -> Compilation:
    """Prove the content of the file, as it would be read, and only then write it.

    choice   the streams of the proof; None for no proof
    specialisation  the effect of specialised kernels, for the report
    Raises   WriteError: inner wires are fetched, or the file cannot be written; InputError: a name that does not end
             in .pulse, or one of a device
    """
    assert isinstance(program, NativeProgram), "only programs of the numba backend are written"
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path}: a program is written as {SUFFIX}, not {kind_of(path)}")
    require_replaceable(path)
    proof, note, rounding = None, None, tuple[str, ...]()
    if choice is not None:
        model = program.network if program.activations == "f32" else opened.pulsify()
        proof = time_proof(lambda: _prove(opened, program, model, choice))
        if program.form != "f32":
            form, rows, frames = program.form, program.activations, proof.proof.lengths[-1]
            prepare = kernel_preparation()
            errors = rounding_losses(model, form, frames, prepare=prepare, activations=rows)
            rounding = tuple(f"{error.output}: {error}" for error in errors)
        note = _note(proof.proof, EXACT if program.form == "f32" else ROUNDED, rounding)
    content = program.to_bytes(note, **opened.rate_metadata)
    is_proved = proof is None or proof.proof.equal
    if is_proved:
        write_file(content, path)
    return Compilation(
        opened, program, path if is_proved else None, len(content), proof, rounding, specialisation
    )


def _prove(
    opened: OpenedModel, program: NativeProgram, model: PulsedNetwork, choice: ProofChoice
) -> ProofReport:
    """Prove the file to be written, with f32 weights if its own are rounded; ``model`` has f32 activations."""
    exact = program if program.form == "f32" else NativeProgram(model)
    stored = read_program(exact.to_bytes())
    oracle = pulsed_oracle(model, opened.model.analyse(program.pulse))
    programs = [ReferenceProgram(model), stored]
    return prove_programs(model, oracle, programs, choice, opened.model.original)


def _note(proof: ProofReport, subject: str, rounding: tuple[str, ...]) -> ProofNote:
    lengths, worst = proof.lengths, proof.worst
    return ProofNote(
        outcome=proof.outcome,
        verdict=proof.verdict,
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        of=subject,
        streams=len(proof.tried),
        shortest=lengths[0],
        longest=lengths[-1],
        seed=proof.seed,
        error=worst.error,
        relative=worst.relative,
        share=worst.share,
        rounding=rounding,
    )
