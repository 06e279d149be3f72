"""Models joined end to end, as one typed model."""

from pulse.chaining.chain import chain
from pulse.chaining.stage import Stage

__all__ = ["Stage", "chain"]
