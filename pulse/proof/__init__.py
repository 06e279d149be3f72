"""The proof that a stream equals its offline model, or the first wire at which it does not."""

from pulse.proof.prover import compare, prove
from pulse.proof.report import Coverage, Divergence, Report, TrialRecord

__all__ = ["Coverage", "Divergence", "Report", "TrialRecord", "compare", "prove"]
