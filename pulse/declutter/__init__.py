"""Rewrites that simplify a typed model without changing its meaning: one list of rules."""

from pulse.declutter.driver import DECLUTTER, declutter, declutter_and_count
from pulse.declutter.rewrite import Rewrite

__all__ = ["DECLUTTER", "Rewrite", "declutter", "declutter_and_count"]
