"""Text shared by the messages about an export."""

import re
import sys
from collections.abc import Sequence
from types import FrameType

BAKED_ADVICE = (
    "typical causes are int(x.shape[-1]) or len(x), a comparison of a length with a number, a while loop over time, "
    "a padding or a mask whose size was computed in Python or numpy, and tables of a fixed length; compute with "
    "x.shape[-1] and tensor operations instead, slice tables with [:x.shape[-1]], and write loops over time with "
    "range (for t in range(x.shape[1])), or as layers (nn.GRU, convolutions, cumsum)"
)
"""Advice for a length that was baked in."""

BRANCH_ADVICE = (
    "compute one result for all lengths, such as F.pad(x, (0, -n % 4)) without `if n % 4:` around it"
)
"""Advice for a condition on a length."""

COMPLEX_ADVICE = (
    "write them as pairs of real numbers: torch.stft(..., return_complex=True) with torch.view_as_real after it, "
    "products as (a*c - b*d, a*d + b*c), magnitudes as sqrt(a*a + b*b), padding before the transform; "
    "torch.complex(a, b) before torch.istft or torch.fft.irfft is supported"
)
"""Advice for complex numbers that are not supported."""

DATA_ADVICE = (
    "one export serves all values, so sizes and conditions may depend on lengths, but not on what a tensor holds "
    "(.item(), int(tensor), if tensor): keep the size constant and hide missing entries with a mask, choose with "
    "torch.where, or give it as a Python number"
)
"""Advice for a size or condition that depends on the values of a tensor."""

MAX_BRANCHES = 3
"""Maximum number of conditions that a message lists; the others are left out."""

MAX_REASON_LENGTH = 1000
"""Maximum number of characters shown of a message of PyTorch; a longer one is cut."""

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


def describe_branches(branches: Sequence[str]) -> str:
    """Return the conditions on lengths that the example has decided, and what to write instead; empty if none."""
    if not branches:
        return ""
    listed = ", ".join(branches[:MAX_BRANCHES])
    more = f" and {len(branches) - MAX_BRANCHES} more" if len(branches) > MAX_BRANCHES else ""
    return f"the example has decided these conditions for all lengths: {listed}{more}; {BRANCH_ADVICE}"


def describe_flip(line: str, symbol: str, frames: int) -> str:
    """Return a note about a condition that changes at a length."""
    return (
        f"{line}: this condition changes at {symbol} = {frames}; the model always takes the example's branch, so from "
        "there on it may differ from the module; pass an example as long as the streams, or write it so that no length "
        "is compared"
    )


def is_author(frame: FrameType) -> bool:
    """Return whether a frame runs neither PyTorch, nor this package, nor Python's library."""
    package = frame.f_globals.get("__name__", "").split(".")[0]
    return package not in ("torch", "pulse", "onnxscript") and package not in sys.stdlib_module_names


def author_line(error: BaseException) -> str:
    """Return the innermost line outside PyTorch and this package in an exception's trace; empty if there is none."""
    line, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_author(trace.tb_frame):
            line = f"{code.co_filename.rpartition('/')[2]} line {trace.tb_lineno}"
        trace = trace.tb_next
    return line


def plain_message(text: object) -> str:
    """Return a message of PyTorch in one line, without colours, graphs and traces."""
    lines: list[str] = []
    for line in _COLOUR.sub("", str(text)).strip().splitlines():
        if lines and (line.startswith(_ENDINGS) or sum(map(len, lines)) + len(line) > MAX_REASON_LENGTH):
            break
        lines.append(line.strip())
    return " ".join(filter(None, lines))[: 2 * MAX_REASON_LENGTH]
