"""Constants in the text."""

import numpy as np

from pulse.facts import I64
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads


@reads("constant", parameters="shape value")
def read_constant(node: NodeReader) -> NnefWire:
    """Read one number for all entries, or one for each."""
    value = node.arguments["value"]
    wire = node.as_wire(
        value if isinstance(value, list) else [value] if isinstance(value, bool | int | float) else value,
        "value",
    )
    shape = node.integers("shape")
    assert wire.value is not None
    if min(shape, default=1) < 1 or wire.value.size not in (1, int(np.prod(shape))):
        raise node.error(f"{wire.value.size} values do not fill the shape {shape}")
    if int(np.prod(shape)) > 1 << 24:
        raise node.error(f"the shape {shape} is too large for a constant in the text; store it as a variable")
    flat = wire.value.ravel()
    array = np.broadcast_to(flat, shape) if flat.size == 1 else flat.reshape(shape)
    return node.graph.constant(np.ascontiguousarray(array), node.targets[0])


@reads("tract_core_range", parameters="start end step")
def read_range(node: NodeReader) -> NnefWire:
    bounds = [node.wire(name, I64) for name in ("start", "end", "step")]
    if len({bound.dtype for bound in bounds}) != 1 or any(bound.rank for bound in bounds):
        raise node.error("start, end and step must be numbers of one type")
    return node.add("Range", bounds, bounds[0].dtype, [None])


@reads("tract_core_shape_of", parameters="input")
def read_shape(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    return node.add("Shape", [x], I64, [x.rank])
