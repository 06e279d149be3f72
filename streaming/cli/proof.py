"""What check and convert have in common: the options of a proof, and how its report is printed."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.cli.console import CHECK_FAILED, NOT_PROVED, duration, print_error, stdout

if TYPE_CHECKING:
    from pulse.proof import Report


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


USUAL = ProofOptions()


@dataclass
class Spent:
    """How long a proof took."""

    seconds: float = 0.0


@contextmanager
def timed() -> Generator[Spent]:
    """What is done inside is a proof."""
    spent, started = Spent(), time.perf_counter()
    yield spent
    spent.seconds = time.perf_counter() - started


def proof_lines(report: "Report", spent: Spent) -> list[tuple[str, str]]:
    """Names and texts."""
    backends = " and ".join(report.backends)
    return [("proof", f"{backends}, {duration(spent.seconds)}"), *report.lines()]


def proof_dict(report: "Report", spent: Spent) -> dict[str, Any]:
    """For JSON."""
    return {**report.as_dict(), "spent_s": spent.seconds}


def end_with(report: "Report", json: bool, then: str = "") -> None:
    """Say how the proof ended, and end the command accordingly.

    then   what follows from a divergence
    """
    verdict = f"{report.verdict}{then if report.outcome == 'diverged' else ''}"
    if report.outcome == "equal":
        if not json:
            stdout().print(verdict, style="bold green")
        return
    print_error(verdict)
    raise typer.Exit(CHECK_FAILED if report.outcome == "diverged" else NOT_PROVED)
