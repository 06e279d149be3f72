"""Ops that move elements twice, or broadcast them twice."""

from pulse.declutter.rewrite import Rewrite, bypass, first_output, has_one_reader
from pulse.facts import volume
from pulse.graph import OutletId
from pulse.ops.elementwise import Elementwise
from pulse.ops.op import Op
from pulse.ops.shape import Expand, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.patch import Patch, replace_op
from pulse.typed import TypedGraph, TypedNode, known_value


def _merge_transposes(graph: TypedGraph, node: TypedNode, op: Transpose) -> Patch | None:
    first = graph.node(node.inputs[0])
    if not isinstance(first.op, Transpose):
        return None
    perm = tuple(first.op.perm[axis] for axis in op.perm)
    if perm == tuple(range(len(perm))):
        return bypass(graph, node, first.inputs[0])
    return replace_op(graph, first_output(node), node.name, Transpose(perm), first.inputs)


def _undo_regrouping(graph: TypedGraph, node: TypedNode, op: Op) -> Patch | None:
    if not op.keeps_order:
        return None
    for outlet in _wires_of_same_order(graph, node):
        patch = bypass(graph, node, outlet)
        if patch is not None:
            return patch
    return None


def _wires_of_same_order(graph: TypedGraph, node: TypedNode) -> list[OutletId]:
    """Return the wires up the graph that hold the same elements in the same order."""
    inputs = list(node.inputs)
    while graph.node(inputs[-1]).op.keeps_order:
        inputs.append(graph.node(inputs[-1]).inputs[0])
    return inputs


def _merge_reshapes(graph: TypedGraph, node: TypedNode, _: Reshape) -> Patch | None:
    first = graph.node(node.inputs[0])
    if not first.op.keeps_order:
        return None
    shape = graph.fact(first_output(node)).shape
    if volume(shape) != volume(graph.fact(first.inputs[0]).shape):
        return None
    return replace_op(graph, first_output(node), node.name, Reshape(shape), first.inputs)


def _merge_slices(graph: TypedGraph, node: TypedNode, outer: Slice) -> Patch | None:
    first = graph.node(node.inputs[0])
    inner = first.op
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
    if not op.facts(graph.input_facts(first))[0].agrees(graph.fact(first_output(node))):
        return None
    return replace_op(graph, first_output(node), node.name, op, first.inputs)


def _cancel_transposes_around(graph: TypedGraph, node: TypedNode, op: Elementwise) -> Patch | None:
    """Replace T(f(S(x), S(y))) by f(x, y), where T is the inverse of S; one-element constants do not change."""
    if graph.is_output(first_output(node)):
        return None
    readers = [graph.nodes[inlet.node] for inlet in graph.outlet(first_output(node)).successors]
    if not readers or not all(isinstance(reader.op, Transpose) for reader in readers):
        return None
    perms = {reader.op.perm for reader in readers if isinstance(reader.op, Transpose)}
    if len(perms) > 1:
        return None
    back = perms.pop()
    sources: list[OutletId] = []
    for outlet in node.inputs:
        producer, value = graph.node(outlet), known_value(graph, outlet)
        if isinstance(producer.op, Transpose) and has_one_reader(graph, outlet):
            if tuple(producer.op.perm[axis] for axis in back) != tuple(range(len(back))):
                return None
            sources.append(producer.inputs[0])
        elif value is not None and value.size == 1 and value.ndim <= len(back):
            sources.append(outlet)
        else:
            return None
    patch = Patch(graph)
    merged = patch.wire(readers[0].name, op, [patch.tap(outlet) for outlet in sources])[0]
    if any(not graph.fact(first_output(reader)).agrees(patch.graph.fact(merged)) for reader in readers):
        return None
    for reader in readers:
        patch.shunt(first_output(reader), merged)
    return patch


MOVEMENT = (
    Rewrite(
        "function_between_transposes",
        "an elementwise function does not depend on the position of an element",
        _cancel_transposes_around,
        (Elementwise,),
    ),
    Rewrite(
        "two_transposes",
        "axis i comes from perm1[perm2[i]] of the first input",
        _merge_transposes,
        (Transpose,),
    ),
    Rewrite(
        "there_and_back",
        "reshapes keep the order, so a tensor that returns to its old shape is the old tensor",
        _undo_regrouping,
    ),
    Rewrite(
        "two_reshapes",
        "regrouping keeps the order, so only the last shape counts",
        _merge_reshapes,
        (Reshape,),
    ),
    Rewrite(
        "two_slices",
        "frame j of x[a::m][b::k] is frame a + b*m + j*k*m of x; both must be as long",
        _merge_slices,
        (Slice,),
    ),
)


def _drop_expand(graph: TypedGraph, node: TypedNode, op: Elementwise) -> Patch | None:
    for slot, outlet in enumerate(node.inputs):
        expand = graph.node(outlet)
        if not isinstance(expand.op, Expand):
            continue
        inputs = [*node.inputs[:slot], expand.inputs[0], *node.inputs[slot + 1 :]]
        facts = op.facts([graph.fact(source) for source in inputs])
        if facts[0].agrees(graph.fact(first_output(node))):
            return replace_op(graph, first_output(node), node.name, op, inputs)
    return None


BROADCASTS = (
    Rewrite(
        "expand_into",
        "an elementwise op broadcasts its inputs itself, if another one has the size",
        _drop_expand,
        (Elementwise,),
    ),
)
