"""Rewrites that keep the meaning of a typed model and leave less of it: one visible list of rules."""

from pulse.declutter.driver import DECLUTTER, declutter, declutter_and_count
from pulse.declutter.rewrite import Rewrite

__all__ = ["DECLUTTER", "Rewrite", "declutter", "declutter_and_count"]
