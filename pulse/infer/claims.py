"""Shapes that a file states although its graph determines them, for outputs and ``value_info``.

Exporters leave them behind, and they go stale: lengths of the example that was traced, shapes from before a rewrite.
So they are believed only if nothing else is known, and reported as wrong if the graph proves it. Names of sizes
are not claims at all: exporters make them up for outputs. They only name a size of an input that has no name.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from pulse.errors import PulseError, PulseWarning
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.infer.fact import InferenceFact
from pulse.support.wording import spell

Claim: TypeAlias = tuple[OutletId, InferenceFact]

MAX_SHOWN_CLAIMS = 3
"""How many wrong claims a warning lists."""


def warn_refuted(
    title: str, claims: Iterable[Claim], facts: Mapping[OutletId, TypedFact], label: Callable[[OutletId], str]
) -> None:
    """Warn once of the claims that do not hold."""
    wrong = dict.fromkeys(
        f"{label(wire)} is {TypedFact(facts[wire].dtype, facts[wire].shape)}, not {claim}"
        for wire, claim in claims
        if wire in facts and _is_refuted(claim, facts[wire])
    )
    if wrong:
        lines = list(wrong)[:MAX_SHOWN_CLAIMS] + (
            [f"and {len(wrong) - MAX_SHOWN_CLAIMS} more"] if len(wrong) > MAX_SHOWN_CLAIMS else []
        )
        _warn(f"{title}: shapes that the file states do not hold and are ignored: {'; '.join(lines)}")


def warn_contradicted(title: str, error: PulseError) -> None:
    """Warn that the claims contradict the graph, so that none of them counts."""
    _warn(f"{title}: shapes that the file states contradict its graph and are ignored: {error}")


def _warn(message: str) -> None:
    silence = f"{spell('ignore_value_info', True)} ignores all of them silently"
    warnings.warn(f"{message}; {silence}", PulseWarning, stacklevel=4)


def _is_refuted(claim: InferenceFact, fact: TypedFact) -> bool:
    if claim.dtype is not None and not (
        claim.dtype == fact.dtype or (claim.dtype.kind in "iu" and fact.dtype.kind in "iu")
    ):
        return True
    if claim.rank is not None and claim.rank != fact.rank:
        return True
    sizes = zip(claim.dims, fact.shape)
    return any(size is not None and size != dim and not size.prove_eq(dim).yes for size, dim in sizes)
