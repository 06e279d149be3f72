"""Constant scales and shifts of channels that become part of the weights.

Folding uses double precision. It is skipped if the new weights would overflow or lose small values.
"""

import numpy as np

from pulse.declutter.rewrite import Rewrite, first_output, has_one_reader
from pulse.facts import Array, Doubles, DType, dtype_name
from pulse.graph import OutletId
from pulse.ops.conv import Conv, ConvTranspose
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE, FunctionEntry
from pulse.ops.matmul import MatMul
from pulse.ops.source import Const, Source
from pulse.patch import Patch
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNode, known_value

MAX_CHANNELS = 1 << 22
"""Maximum number of channels for which a vector of their numbers is made."""
ANY_NUMBER = -1
"""The arity of functions of any number of inputs; but for sums, they choose among these: the smallest, the largest."""


@record(eq=False)
class Affine:
    """``scale * x + shift`` of a wire x, one number of each for every channel."""

    x: OutletId
    scale: Doubles
    shift: Doubles


def _find_affine(graph: TypedGraph, node: TypedNode, axis: int) -> Affine | None:
    """Return the effect of a node on the channels of ``axis`` if it is constant, affine and keeps the shape."""
    if not isinstance(node.op, Elementwise):
        return None
    row = ELEMENTWISE[node.op.kind]
    if row.arity != 2 or (row.signs is None and row.factor is None):
        return None
    values = [known_value(graph, outlet) for outlet in node.inputs]
    if (values[0] is None) == (values[1] is None):
        return None
    slot = 0 if values[0] is None else 1
    x, value = node.inputs[slot], values[1 - slot]
    fact = graph.fact(x)
    if value is None or dtype_name(fact.dtype) not in ("f32", "f64"):
        return None
    if not fact.agrees(graph.fact(first_output(node))) or not fact.shape[axis].is_const:
        return None
    channels = _channel_values(value, fact.rank, axis % fact.rank, int(fact.shape[axis]))
    return None if channels is None else _make_affine(row, x, slot, channels)


def _channel_values(value: Array, rank: int, axis: int, size: int) -> Doubles | None:
    shape = (1,) * (rank - value.ndim) + value.shape
    if size > MAX_CHANNELS or any(length != 1 for index, length in enumerate(shape) if index != axis):
        return None
    return np.broadcast_to(value.reshape(-1), (size,)).astype(np.float64)


def _make_affine(row: FunctionEntry, x: OutletId, slot: int, value: Doubles) -> Affine | None:
    """Return the effect of a function of two inputs on x, its input at ``slot``; the other one is ``value``."""
    if row.signs is not None:
        return Affine(x, row.signs[slot] * np.ones_like(value), row.signs[1 - slot] * value)
    scale = None if row.factor is None else row.factor(value, slot)
    return None if scale is None else Affine(x, scale, np.zeros_like(value))


def _cast_or_none(value: Doubles, dtype: DType) -> Array | None:
    """Return the value in the type of the model, None if that overflows or loses small numbers."""
    with np.errstate(all="ignore"):
        cast = value.astype(dtype)
    underflows = (value != 0) & (np.abs(cast) < np.finfo(dtype).tiny)
    return None if underflows.any() or not np.isfinite(cast).all() else cast


def _known_weights(graph: TypedGraph, node: TypedNode) -> tuple[Doubles, Doubles | None] | None:
    """Return weights and bias (None if there is none) of a node, if they are known and its own."""
    w = known_value(graph, node.inputs[1])
    if w is None or not has_one_reader(graph, node.inputs[1]):
        return None
    if len(node.inputs) < 3:
        return w.astype(np.float64), None
    b = known_value(graph, node.inputs[2])
    return None if b is None else (w.astype(np.float64), b.astype(np.float64))


def _replace_weights(
    graph: TypedGraph, node: TypedNode, old: OutletId, x: OutletId, w: Doubles, b: Doubles | None
) -> Patch | None:
    """Return the patch that puts ``node`` with another input, weights and bias in place of ``old``."""
    dtype = graph.fact(x).dtype
    weights = _cast_or_none(w, dtype)
    bias = None if b is None else _cast_or_none(b, dtype)
    if weights is None or (b is not None and bias is None):
        return None
    patch = Patch(graph)
    inputs = [patch.tap(x), patch.add_constant(graph.label(node.inputs[1]), weights)]
    if bias is not None:
        name = graph.label(node.inputs[2]) if len(node.inputs) > 2 else f"{node.name}.bias"
        inputs.append(patch.add_constant(name, bias))
    patch.shunt(old, patch.wire(graph.node(old).name, node.op, inputs)[0])
    return patch


def _scale_outputs(op: Conv | ConvTranspose, w: Doubles, scale: Doubles) -> Doubles:
    """Return weights with their output channels multiplied."""
    if isinstance(op, Conv):
        return w * scale.reshape(-1, *(1,) * (w.ndim - 1))
    by_group = w.reshape(op.group, -1, *w.shape[1:])
    return (by_group * scale.reshape(op.group, 1, -1, *(1,) * (w.ndim - 2))).reshape(w.shape)


def _fold_affine_after_conv(graph: TypedGraph, node: TypedNode, _: Elementwise) -> Patch | None:
    affine = _find_affine(graph, node, 1) if graph.fact(first_output(node)).rank > 2 else None
    if affine is None or not has_one_reader(graph, affine.x):
        return None
    conv = graph.node(affine.x)
    if not isinstance(conv.op, Conv | ConvTranspose):
        return None
    weights = _known_weights(graph, conv)
    if weights is None:
        return None
    w, b = weights
    if b is not None or affine.shift.any():
        b = affine.scale * (0 if b is None else b) + affine.shift
    return _replace_weights(
        graph, conv, first_output(node), conv.inputs[0], _scale_outputs(conv.op, w, affine.scale), b
    )


def _fold_scale_after_matmul(graph: TypedGraph, node: TypedNode, _: Elementwise) -> Patch | None:
    affine = _find_affine(graph, node, -1) if graph.fact(first_output(node)).rank > 0 else None
    if affine is None or affine.shift.any() or not has_one_reader(graph, affine.x):
        return None
    product = graph.node(affine.x)
    weights = _known_weights(graph, product) if isinstance(product.op, MatMul) else None
    if weights is None or weights[0].ndim < 2:
        return None
    return _replace_weights(
        graph, product, first_output(node), product.inputs[0], weights[0] * affine.scale, None
    )


def _may_be_exact(graph: TypedGraph, outlet: OutletId) -> bool:
    """Return whether a wire may have values without rounding errors: inputs, integers, and what copies or limits them.

    A shift of such values, as by the zero point of codes, may cancel most of their digits without an error. Sums of
    the values before the shift have rounding errors in proportion to these values.
    """
    waiting, followed = [outlet], set[OutletId]()
    while waiting:
        outlet = waiting.pop()
        node = graph.node(outlet)
        if isinstance(node.op, Elementwise):
            row = ELEMENTWISE[node.op.kind]
            if row.idempotent or (row.arity == ANY_NUMBER and row.signs is None):
                return True
        elif isinstance(node.op, Source | Const | Cast):
            return True
        elif node.op.copies and outlet not in followed:
            followed.add(outlet)
            waiting += node.inputs
    return False


def _fold_affine_before_conv(graph: TypedGraph, node: TypedNode, op: Conv) -> Patch | None:
    if not has_one_reader(graph, node.inputs[0]):
        return None
    affine = _find_affine(graph, graph.node(node.inputs[0]), 1)
    weights = None if affine is None else _known_weights(graph, node)
    if affine is None or weights is None:
        return None
    has_padding = any(pair != (0, 0) for pair in op.pads)
    if affine.shift.any() and (has_padding or _may_be_exact(graph, affine.x)):
        return None
    w, b = weights
    by_input = (op.group, 1, -1, *(1,) * (w.ndim - 2))
    by_group = w.reshape(op.group, -1, *w.shape[1:])
    if affine.shift.any():
        offset = (
            (by_group * affine.shift.reshape(by_input)).sum(axis=tuple(range(2, by_group.ndim))).reshape(-1)
        )
        b = offset if b is None else b + offset
    kernel = (by_group * affine.scale.reshape(by_input)).reshape(w.shape)
    return _replace_weights(graph, node, first_output(node), affine.x, kernel, b)


AFFINE = (
    Rewrite(
        "affine_after_conv",
        "a convolution is linear in its weights: s(w*x + b) + t = (sw)*x + (sb + t)",
        _fold_affine_after_conv,
        (Elementwise,),
    ),
    Rewrite(
        "scale_after_matmul",
        "columns of a product scale with columns of its right side",
        _fold_scale_after_matmul,
        (Elementwise,),
    ),
    Rewrite(
        "affine_before_conv",
        "w*(sx + t) = (ws)*x + sum(w)t where no pad is between; t = 0 if there is one, or if x may be exact",
        _fold_affine_before_conv,
        (Conv,),
    ),
)
