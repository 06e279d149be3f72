"""Prove comparisons of dims for all allowed values at once."""

from __future__ import annotations

from typing import Literal

from pulse.dim.cases import Extent, extent_under
from pulse.dim.interval import interval, meet
from pulse.dim.tdim import ComparisonSign, DimInterval, Proof, TDim, Verdict


def prove(left: TDim, relation: ComparisonSign, right: TDim) -> Proof:
    match relation:
        case ">=":
            verdict = _verdict("ge", left - right)
        case ">":
            verdict = _verdict("ge", left - right - 1)
        case "<=":
            verdict = _verdict("ge", right - left)
        case "<":
            verdict = _verdict("ge", right - left - 1)
        case "==":
            verdict = _verdict("eq", left - right)
    return Proof(left, relation, right, verdict)


def bounds(dim: TDim) -> DimInterval:
    """Return the proven smallest and largest value."""
    from_ranges = interval(dim)
    extent = None if dim.scope is None else extent_under(dim, dim.scope.premises)
    return from_ranges if extent is None else meet(from_ranges, (extent.low, extent.high))


def _verdict(question: Literal["ge", "eq"], dim: TDim) -> Verdict:
    judge = _judge_ge if question == "ge" else _judge_eq
    low, high = interval(dim)
    quick = judge(Extent(low, high, True))
    if quick != "unknown" or dim.scope is None:
        return quick
    cache = dim.scope.cache.verdicts
    key = (question, dim)
    if key not in cache:
        extent = extent_under(
            dim, dim.scope.premises, lambda extent_so_far: judge(extent_so_far) != "unknown"
        )
        cache[key] = "yes" if extent is None else judge(extent)
    return cache[key]


def _judge_ge(extent: Extent) -> Verdict:
    if extent.low is not None and extent.low >= 0:
        return "yes"
    return "no" if extent.high is not None and extent.high < 0 else "unknown"


def _judge_eq(extent: Extent) -> Verdict:
    if extent.low == 0 and extent.high == 0:
        return "yes"
    above = extent.low is not None and extent.low > 0
    below = extent.high is not None and extent.high < 0
    return "no" if above or below or not extent.may_be_zero else "unknown"
