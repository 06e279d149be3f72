"""Symbolic integer dimensions with floor division."""

from pulse.dim.canonical import (
    ONE,
    ZERO,
    broadcast,
    ceil_div,
    combine,
    dim_max,
    dim_min,
    eq,
    floor_div,
    ge,
    gt,
    multiply,
    substitute,
)
from pulse.dim.cases import choices, period
from pulse.dim.monotone import never_falls
from pulse.dim.proof import bounds, prove
from pulse.dim.ratio import Ratio
from pulse.dim.scope import SymbolScope, cache_in_scope, scope_of
from pulse.dim.slope import slope
from pulse.dim.tdim import Algebra, DimOperators, Proof, Symbol, TDim

__all__ = [
    "ONE",
    "ZERO",
    "Proof",
    "Ratio",
    "Symbol",
    "SymbolScope",
    "TDim",
    "broadcast",
    "cache_in_scope",
    "ceil_div",
    "choices",
    "dim_max",
    "dim_min",
    "eq",
    "ge",
    "gt",
    "never_falls",
    "period",
    "scope_of",
]

DimOperators.algebra = Algebra(combine, multiply, floor_div, substitute, slope, bounds, prove)
