"""Floats that a model quantises and reads back at once: they stay floats."""

import numpy as np

from pulse.declutter.conditions import uniform_value
from pulse.declutter.rewrite import Rewrite, bypass, first_output, has_one_reader
from pulse.facts import F32, dtype_name
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_within import RangeCheck
from pulse.patch import Patch
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNode

MAX_CODE_BITS = 16
"""The most bits of codes; f32 has them and their differences exactly."""


@record
class _RoundedWire:
    """A wire x of which a model computes ``min(max(round(x) + zero, low), high)``, all of them integers.

    If x is ``mul_round`` of two wires, it is rounded already.
    """

    x: OutletId
    zero: int
    low: int
    high: int


def _take_operand(graph: TypedGraph, outlet: OutletId, kind: str) -> tuple[OutletId, int] | None:
    """Return x and the integer n if a wire, which has one reader, is ``kind(x, n)`` of the shape of x."""
    node = graph.node(outlet)
    if not (isinstance(node.op, Elementwise) and node.op.kind == kind and len(node.inputs) == 2):
        return None
    for slot in (0, 1):
        x, value = node.inputs[slot], uniform_value(graph, node.inputs[1 - slot])
        if value is not None and graph.fact(x).agrees(graph.fact(outlet)) and has_one_reader(graph, outlet):
            number = float(value)
            return (x, int(number)) if abs(number) < 1 << MAX_CODE_BITS and number.is_integer() else None
    return None


def _find_rounding(graph: TypedGraph, outlet: OutletId) -> _RoundedWire | None:
    limited_above = _take_operand(graph, outlet, "min")
    limited_below = None if limited_above is None else _take_operand(graph, limited_above[0], "max")
    if limited_above is None or limited_below is None:
        return None
    (_, high), (rounded, low) = limited_above, limited_below
    moved, zero = _take_operand(graph, rounded, "add") or (rounded, 0)
    node = graph.node(moved)
    if not isinstance(node.op, Elementwise) or not has_one_reader(graph, moved) or low > high:
        return None
    x = {"round": node.inputs[0], "mul_round": moved}.get(node.op.kind)
    return None if x is None else _RoundedWire(x, zero, low, high)


def _keep_codes_as_floats(graph: TypedGraph, node: TypedNode, op: Cast) -> Patch | None:
    codes = graph.node(node.inputs[0])
    dtype = graph.fact(node.inputs[0]).dtype
    if not isinstance(codes.op, Cast) or dtype.kind not in "iu" or not has_one_reader(graph, node.inputs[0]):
        return None
    if op.dtype != F32 or graph.fact(codes.inputs[0]).dtype != F32 or 8 * dtype.itemsize > MAX_CODE_BITS:
        return None
    rounded = _find_rounding(graph, codes.inputs[0])
    if rounded is None or not np.iinfo(dtype).min <= rounded.low <= rounded.high <= np.iinfo(dtype).max:
        return None
    patch = Patch(graph)
    bounds = rounded.low - rounded.zero, rounded.high - rounded.zero
    limited = Elementwise("round_within", (float(bounds[0]), float(bounds[1])))
    (y,) = patch.wire(f"{codes.name}.limited", limited, [patch.tap(rounded.x)])
    (y,) = patch.wire(f"{codes.name}.checked", RangeCheck(*bounds, dtype_name(dtype)), [y])
    if rounded.zero:
        zero = patch.add_constant(f"{node.name}.zero", np.array(rounded.zero, F32))
        (y,) = patch.wire(node.name, Elementwise("add"), [y, zero])
    patch.shunt(first_output(node), y)
    return patch


def _is_read_as_float(graph: TypedGraph, outlet: OutletId) -> bool:
    """Return whether all readers of a wire are casts to f32, perhaps after parts and views of the wire."""
    for inlet in graph.outlet(outlet).successors:
        reader = graph.nodes[inlet.node]
        if reader.op.keeps_values:
            if not _is_read_as_float(graph, first_output(reader)):
                return False
        elif not isinstance(reader.op, Cast) or reader.op.dtype != F32:
            return False
    return not graph.is_output(outlet)


def _convert_before_view(graph: TypedGraph, node: TypedNode, op: Cast) -> Patch | None:
    view = graph.node(node.inputs[0])
    if op.dtype != F32 or not view.op.keeps_values or len(view.inputs) != 1:
        return None
    codes, source = view.inputs[0], graph.node(view.inputs[0])
    while source.op.keeps_values:
        codes, source = source.inputs[0], graph.node(source.inputs[0])
    if not isinstance(source.op, Cast) or not _is_read_as_float(graph, codes):
        return None
    if _find_rounding(graph, source.inputs[0]) is None:
        return None
    patch = Patch(graph)
    (floats,) = patch.wire(f"{view.name}.floats", op, [patch.tap(view.inputs[0])])
    patch.shunt(first_output(node), patch.wire(node.name, view.op, [floats])[0])
    return patch


def _drop_zero_point(graph: TypedGraph, node: TypedNode, op: Elementwise) -> Patch | None:
    if op.kind != "sub":
        return None
    zero = uniform_value(graph, node.inputs[1])
    moved = _take_operand(graph, node.inputs[0], "add")
    if zero is None or moved is None or float(zero) != moved[1]:
        return None
    return bypass(graph, node, moved[0]) if isinstance(graph.node(moved[0]).op, RangeCheck) else None


CODES = (
    Rewrite(
        "floats_before_view",
        "a part or a view of converted codes is the same part of the codes, converted",
        _convert_before_view,
        (Cast,),
    ),
    Rewrite(
        "float_codes",
        "floats limited to whole numbers of an integer type keep their values in it; a check counts NaN",
        _keep_codes_as_floats,
        (Cast,),
    ),
    Rewrite(
        "zero_point",
        "(x + z) - z is x for whole numbers that f32 holds",
        _drop_zero_point,
        (Elementwise,),
    ),
)
