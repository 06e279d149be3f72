"""Symbolic integer dimensions with floor division."""

from pulse.dim.canonical import broadcast, ceil_div, dim_max, dim_min, eq, ge, gt
from pulse.dim.proof import Proof
from pulse.dim.scope import SymbolScope, remembered
from pulse.dim.tdim import Symbol, TDim

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
]
