"""Resizing."""

from typing import Any

import numpy as np

from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads


@reads("nearest_upsample", parameters="input factor")
def read_repeated(node: NodeReader) -> NnefWire:
    """Repeat every entry by the factor of its axis; the first two axes have none."""
    x, factor = node.wire("input"), node.integers("factor")
    if len(factor) != x.rank - 2 or min(factor, default=1) < 1:
        raise node.error(f"factor {factor} must be a positive number for each axis from the third on")
    scales = node.graph.constant(np.array([1, 1, *factor], np.float32), f"{node.targets[0]}.scales")
    attributes: dict[str, Any] = {
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    sizes = [None if size is None else size * times for size, times in zip(x.sizes, (1, 1, *factor))]
    return node.add("Resize", [x, None, scales], x.dtype, sizes, **attributes)
