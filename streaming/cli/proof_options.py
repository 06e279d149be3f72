"""The options of a proof that check and convert share, and the exit code of a command that proved nothing."""

from typing import TYPE_CHECKING

import typer

from pulse.support.record import record
from streaming.cli.console import CHECK_FAILED, NOT_PROVED, print_error
from streaming.cli.options import option

if TYPE_CHECKING:
    from pulse.proof import ProofChoice
    from streaming.reports.timed_proof import TimedProof


@record
class ProofOptions:
    """The options that choose the streams of a proof."""

    length: list[int] | None = option(
        "Length of a stream to try, in frames. Default: a choice of lengths. May be repeated.",
        metavar="FRAMES",
        min=0,
    )
    seed: int = option("Seed of the random inputs.", metavar="N", default=0, min=0)
    long: bool = option("Also try long streams, with every kind of input.", "--long", default=False)

    def choice(self) -> "ProofChoice":
        """Return the options as values."""
        from pulse.proof import ProofChoice

        return ProofChoice(self.length or None, self.seed, self.long)


def require_proof(timed: "TimedProof", consequence: str = "") -> None:
    """End the command with the verdict if the outcome is not ``equal``.

    consequence  what follows from a divergence, appended to the verdict
    """
    require_outcome(timed.proof.outcome, timed.proof.verdict, consequence)


def require_outcome(outcome: str, verdict: str, consequence: str = "") -> None:
    """Do as ``require_proof``, for an outcome and its verdict."""
    if outcome == "equal":
        return
    print_error(f"{verdict}{consequence if outcome == 'diverged' else ''}")
    raise typer.Exit(CHECK_FAILED if outcome == "diverged" else NOT_PROVED)
