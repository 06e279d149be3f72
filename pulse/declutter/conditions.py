"""Comparisons of positions with lengths whose result is the same in every frame, and uniform values."""

from typing import TypeAlias

import numpy as np

from pulse.declutter.rewrite import Rewrite, first_output
from pulse.dim import TDim
from pulse.facts import I32, I64, Array
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.op import Op
from pulse.ops.shape import Expand
from pulse.ops.source import Const
from pulse.ops.time_position import Range
from pulse.patch import Patch
from pulse.typed import TypedGraph, TypedNode, known_value

MAX_BOUNDED_ELEMENTS = 64
"""Maximum number of elements of a constant whose bounds are taken."""
DimBounds: TypeAlias = tuple[TDim, TDim]


def uniform_value(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """Return the common value of all elements of a wire, as an array without axes; None if unknown."""
    functions: list[Op] = []
    node = graph.node(outlet)
    while known_value(graph, outlet) is None and (node.op.keeps_values or _has_one_operand(node.op)):
        if not node.op.keeps_values:
            functions.append(node.op)
        outlet = node.inputs[0]
        node = graph.node(outlet)
    value = known_value(graph, outlet)
    if value is None or not value.size or value.min() != value.max():
        return None
    element = value.reshape(-1)[:1].reshape(())
    for function in reversed(functions):
        (element,) = function.eval([element], {})
    return element


def _has_one_operand(op: Op) -> bool:
    """Return whether it is a function of one truth value or number."""
    return isinstance(op, Cast) or (isinstance(op, Elementwise) and op.kind == "not")


def _decide_comparison(graph: TypedGraph, node: TypedNode, op: Elementwise) -> Patch | None:
    holds_if = ELEMENTWISE[op.kind].holds_if
    if ("<" in holds_if) == (">" in holds_if):
        return None
    fact = node.outputs[0].fact
    left, right = (_bounds(graph, outlet) for outlet in node.inputs)
    if left is None or right is None or not any(dim.symbols for dim in fact.shape):
        return None
    if ">" in holds_if:
        left, right = right, left
    answer = _compare(left, right, strict="=" not in holds_if)
    if answer is None:
        return None
    patch = Patch(graph)
    one = patch.add_constant(f"{node.name}.always", np.full((1,) * fact.rank, answer))
    patch.shunt(first_output(node), patch.wire(node.name, Expand(fact.shape), [one])[0])
    return patch


def _compare(left: DimBounds, right: DimBounds, strict: bool) -> bool | None:
    """Return whether ``left`` is less than ``right`` (not strict: or equal).

    True if all of it is, False if none of it is, None if neither is proved.
    """
    if (left[1].prove_lt(right[0]) if strict else left[1].prove_le(right[0])).yes:
        return True
    if (left[0].prove_ge(right[1]) if strict else left[0].prove_gt(right[1])).yes:
        return False
    return None


def _bounds(graph: TypedGraph, outlet: OutletId) -> DimBounds | None:
    """Return the smallest and the largest of integers that are positions or lengths."""
    node, fact = graph.node(outlet), graph.fact(outlet)
    while node.op.keeps_values or _keeps_integers(graph, node):
        if fact.value is not None:
            break
        outlet = node.inputs[0]
        node, fact = graph.node(outlet), graph.fact(outlet)
    if fact.dtype.kind not in "iu":
        return None
    if isinstance(node.op, Range):
        ends = TDim.of(int(node.op.start)), node.op.length * int(node.op.step) - int(node.op.step)
        first, last = ends[0], ends[0] + ends[1]
        return (first, last) if node.op.step > 0 else (last, first)
    if (
        fact.value is None
        or not isinstance(node.op, Const)
        or not 0 < fact.value.size <= MAX_BOUNDED_ELEMENTS
    ):
        return None
    values = [TDim.of(element) for element in fact.value.ravel().tolist()]
    if all(dim == values[0] for dim in values):
        return values[0], values[0]
    if not all(dim.is_const for dim in values):
        return None
    return TDim.of(min(map(int, values))), TDim.of(max(map(int, values)))


def _keeps_integers(graph: TypedGraph, node: TypedNode) -> bool:
    """Return whether it is a cast between integers of enough bits for a length."""
    if not isinstance(node.op, Cast):
        return False
    before = graph.fact(node.inputs[0]).dtype
    return all(dtype in (I32, I64) for dtype in (before, node.op.dtype))


CONDITIONS = (
    Rewrite(
        "decided_comparison",
        "positions from 0 on are less than the length in every stream",
        _decide_comparison,
        (Elementwise,),
    ),
)
