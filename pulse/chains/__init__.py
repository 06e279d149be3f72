"""Models joined end to end, as one typed model."""

from pulse.chains.chain import chain
from pulse.chains.stage import Stage

__all__ = ["Stage", "chain"]
