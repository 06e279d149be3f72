"""Text shared by the messages about an export."""

import re

BAKED_HELP = (
    "typical causes are int(x.shape[-1]) or len(x), a comparison of a length with a number, a loop over time, a "
    "padding or a mask whose size was computed in Python or numpy, and tables of a fixed length; compute with "
    "x.shape[-1] and tensor operations instead, slice tables with [:x.shape[-1]], and write loops over time as "
    "layers (nn.GRU, convolutions, cumsum)"
)
"""Advice for a length that was baked in."""

COMPLEX_HELP = (
    "write them as pairs of real numbers: torch.stft(..., return_complex=True) with torch.view_as_real behind it, "
    "products as (a*c - b*d, a*d + b*c), magnitudes as sqrt(a*a + b*b), padding before the transform; "
    "torch.complex(a, b) in front of torch.istft or torch.fft.irfft is covered"
)
"""Advice for complex numbers that are not covered."""

LONGEST_REASON = 1000
"""The most characters shown of a message of PyTorch."""

_ENDINGS = (
    "While executing",
    "Original traceback",
    "For more information",
    "For more debugging",
    "GraphModule",
    "Exception raised from",
    "If you're using torch.compile",
    "consider using data-dependent friendly",
    "Caused by",
)
"""The starts of lines after which a message is only about PyTorch's internals."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def plain_message(text: object) -> str:
    """Return a message of PyTorch without colours, graphs and traces, cut to whole lines."""
    lines: list[str] = []
    for line in _COLOUR.sub("", str(text)).strip().splitlines():
        if lines and (line.startswith(_ENDINGS) or sum(map(len, lines)) + len(line) > LONGEST_REASON):
            break
        lines.append(line)
    return "\n".join(lines).strip()[: 2 * LONGEST_REASON]
