"""A proof and its duration."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from pulse.proof import ProofReport
from pulse.support.record import record
from pulse.support.report import Section, Text, duration


@record
class ProofChoice:
    """The streams that a proof runs; see ``pulse.proof.prove``."""

    lengths: Sequence[int] | None = None
    seed: int = 0
    long: bool = False

    @property
    def streams(self) -> tuple[Sequence[int] | None, int, bool]:
        """The lengths, the seed, and whether long streams run, in the order that proofs take them."""
        return self.lengths, self.seed, self.long


@record
class TimedProof:
    """A proof, and the seconds that it took."""

    proof: ProofReport
    spent_s: float

    def pairs(self) -> list[tuple[str, str]]:
        """Return names and texts."""
        backends = " and ".join(self.proof.backends)
        return [("proof", f"{backends}, {duration(self.spent_s)}"), *self.proof.pairs()]

    def verdict(self) -> list[Section]:
        """Return the end of a report if all is proved; otherwise, the command fails with the verdict."""
        return [Text(self.proof.verdict, "bold green")] if self.proof.outcome == "equal" else []

    def as_dict(self) -> dict[str, Any]:
        """Return the proof and its time, for JSON."""
        return {**self.proof.as_dict(), "spent_s": self.spent_s}


def time_proof(prove: Callable[[], ProofReport]) -> TimedProof:
    """Run a proof."""
    start_s = time.perf_counter()
    return TimedProof(prove(), time.perf_counter() - start_s)
