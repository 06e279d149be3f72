"""Text that messages about an export have in common."""

import re

BAKED_HELP = (
    "typical causes are int(x.shape[-1]) or len(x), a comparison of a length with a number, a loop over time, a "
    "padding or a mask whose size was computed in Python or numpy, and tables of a fixed length; compute with "
    "x.shape[-1] and tensor operations instead, slice tables with [:x.shape[-1]], and write loops over time as "
    "layers (nn.GRU, convolutions, cumsum)"
)
"""What helps where a length was baked in."""

LONGEST_REASON = 1000
"""Letters of a message of PyTorch that are worth showing."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def plain_message(text: object) -> str:
    """A message of PyTorch without colours, not too long."""
    return _COLOUR.sub("", str(text)).strip()[:LONGEST_REASON]
