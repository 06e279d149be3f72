"""All kernels: importing this fills the registry."""

from pulse.program.kernels import (
    attention,
    copy,
    cumsum,
    depthwise,
    elementwise,
    gather,
    norm,
    product,
    recurrent,
    reduce,
    scan,
    search,
    time,
)

__all__ = [
    "attention",
    "copy",
    "cumsum",
    "depthwise",
    "elementwise",
    "gather",
    "norm",
    "product",
    "recurrent",
    "reduce",
    "scan",
    "search",
    "time",
]
