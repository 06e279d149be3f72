"""How each family of ops becomes instructions, mirroring ``pulse.ops``. Importing this fills the registry."""

from pulse.program.lower import (
    attention,
    code_table,
    convolution,
    elementwise,
    faults,
    matmul,
    movement,
    norm,
    recurrent,
    reduction,
    resize,
    scan,
    scatter,
    search,
    time,
)

__all__ = [
    "attention",
    "code_table",
    "convolution",
    "elementwise",
    "faults",
    "matmul",
    "movement",
    "norm",
    "recurrent",
    "reduction",
    "resize",
    "scan",
    "scatter",
    "search",
    "time",
]
