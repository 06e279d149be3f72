"""A proof and its duration."""

import time
from collections.abc import Callable
from typing import Any

from pulse.proof import ProofReport
from pulse.support.record import record
from pulse.support.report import Section, Text, duration


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
