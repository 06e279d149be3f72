"""What check and convert have in common: the options of a proof, and how a command ends that proved nothing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.cli.console import CHECK_FAILED, NOT_PROVED, print_error

if TYPE_CHECKING:
    from streaming.reports.timed_proof import ProofChoice, TimedProof


@dataclass(frozen=True)
class ProofOptions:
    """Which streams a proof runs."""

    length: Annotated[
        list[int] | None,
        typer.Option(
            "--length",
            min=0,
            help="Frames to try, instead of well chosen lengths. May be repeated.",
            show_default=False,
        ),
    ] = None
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the random inputs.")] = 0
    long: Annotated[
        bool, typer.Option("--long", help="Try longer streams, and every kind of input on them.")
    ] = False

    def choice(self) -> "ProofChoice":
        """The same, read."""
        from streaming.reports.timed_proof import ProofChoice

        return ProofChoice(self.length or None, self.seed, self.long)


def require_proof(timed: "TimedProof", then: str = "") -> None:
    """End the command with the verdict where the outcome is not ``equal``.

    then   what follows from a divergence
    """
    require_outcome(timed.proof.outcome, timed.proof.verdict, then)


def require_outcome(outcome: str, verdict: str, then: str = "") -> None:
    """The same of an outcome and its verdict."""
    if outcome == "equal":
        return
    print_error(f"{verdict}{then if outcome == 'diverged' else ''}")
    raise typer.Exit(CHECK_FAILED if outcome == "diverged" else NOT_PROVED)
