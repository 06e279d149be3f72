"""Proofs that run streams on random input; the proofs of ``pulse.dim`` are symbolic, and about sizes.

A proof shows that a stream equals its offline model, or the first wire at which it does not.
"""

from pulse.proof.prover import prove, prove_programs
from pulse.proof.report import Coverage, Divergence, ProofReport, TrialRecord
from pulse.proof.trials import ProofChoice

__all__ = ["Coverage", "Divergence", "ProofChoice", "ProofReport", "TrialRecord", "prove", "prove_programs"]
