"""All kernels: importing this fills the registry."""

from pulse.program.kernels import copy, depthwise, elementwise, gather, norm, product, reduce, search, time

__all__ = ["copy", "depthwise", "elementwise", "gather", "norm", "product", "reduce", "search", "time"]
