"""Elements that move and move again."""

from pulse.declutter.rewrite import Rewrite, TypedNode, bypass, result
from pulse.graph import OutletId
from pulse.ops.shape import AddAxis, RemoveAxis, Reshape, Transpose, volume
from pulse.ops.slice import Slice
from pulse.patch import Patch, replaced
from pulse.typed import TypedGraph

REGROUPINGS = (Reshape, AddAxis, RemoveAxis)
"""Ops that keep the row-major order of the elements."""


def _two_transposes(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Transpose):
        return None
    first = graph.node(node.inputs[0])
    if not isinstance(first.op, Transpose):
        return None
    perm = tuple(first.op.perm[axis] for axis in node.op.perm)
    if perm == tuple(range(len(perm))):
        return bypass(graph, node, first.inputs[0])
    return replaced(graph, result(node), node.name, Transpose(perm), first.inputs)


def _there_and_back(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, REGROUPINGS):
        return None
    for outlet in _regrouped(graph, node):
        patch = bypass(graph, node, outlet)
        if patch is not None:
            return patch
    return None


def _regrouped(graph: TypedGraph, node: TypedNode) -> list[OutletId]:
    """The wires up the graph that hold the same elements in the same order."""
    found = list(node.inputs)
    while isinstance(graph.node(found[-1]).op, REGROUPINGS):
        found.append(graph.node(found[-1]).inputs[0])
    return found


def _two_reshapes(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Reshape):
        return None
    first = graph.node(node.inputs[0])
    if not isinstance(first.op, REGROUPINGS):
        return None
    shape = graph.fact(result(node)).shape
    if volume(shape) != volume(graph.fact(first.inputs[0]).shape):
        return None
    return replaced(graph, result(node), node.name, Reshape(shape), first.inputs)


def _two_slices(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Slice):
        return None
    first = graph.node(node.inputs[0])
    inner, outer = first.op, node.op
    if not isinstance(inner, Slice) or inner.axis != outer.axis:
        return None
    if inner.step < 1 or outer.step < 1:
        return None
    start, end = inner.start + outer.start * inner.step, inner.start + outer.end
    if inner.step > 1:
        if not outer.end.prove_gt(outer.start).yes:
            return None
        end = inner.start + (outer.end - 1) * inner.step + 1
    op = Slice(inner.axis, start, end, inner.step * outer.step)
    if not op.facts(graph.input_facts(first))[0].agrees(graph.fact(result(node))):
        return None
    return replaced(graph, result(node), node.name, op, first.inputs)


MOVEMENT = (
    Rewrite(
        "two_transposes",
        "axis i comes from perm1[perm2[i]] of the first input",
        _two_transposes,
        (Transpose,),
    ),
    Rewrite(
        "there_and_back",
        "regrouping keeps the order, so back in the old shape it is the old tensor",
        _there_and_back,
        REGROUPINGS,
    ),
    Rewrite(
        "two_reshapes", "regrouping keeps the order, so only the last shape counts", _two_reshapes, (Reshape,)
    ),
    Rewrite(
        "two_slices",
        "frame j of x[a::m][b::k] is frame a + b*m + j*k*m of x; both must be as long",
        _two_slices,
        (Slice,),
    ),
)
