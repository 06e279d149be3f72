"""Symbolic integer dimensions with floor division."""

from pulse.dim.canonical import (
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
from pulse.dim.proof import bounds, prove
from pulse.dim.scope import SymbolScope, remembered, scope_of
from pulse.dim.slope import slope
from pulse.dim.tdim import Algebra, Arithmetic, Proof, Symbol, TDim

__all__ = [
    "Proof",
    "Symbol",
    "SymbolScope",
    "TDim",
    "broadcast",
    "ceil_div",
    "dim_max",
    "dim_min",
    "eq",
    "ge",
    "gt",
    "remembered",
    "scope_of",
]

Arithmetic.algebra = Algebra(combine, multiply, floor_div, substitute, slope, bounds, prove)
