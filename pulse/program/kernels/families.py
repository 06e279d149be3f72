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
    recurrent_lanes,
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
    "recurrent_lanes",
    "reduce",
    "scan",
    "search",
    "time",
]
