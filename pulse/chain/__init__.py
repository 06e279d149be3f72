"""Models joined end to end, as one typed model."""

from pulse.chain.chain import chain
from pulse.chain.stage import Stage

__all__ = ["Stage", "chain"]
