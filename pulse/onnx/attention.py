"""Attention as one node."""

import math

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.search import steps
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.op import unify
from pulse.ops.shape import AddAxis, Expand, Reshape, Transpose, exact_quotient


@onnx_op("Attention")
def attention(node: NodeContext) -> OutletId:
    """Softmax(scale * q @ transpose(k) + mask) @ v, without a past."""
    if any(node.has(slot) for slot in (4, 5)):
        raise node.error("past keys and values are not covered: stream the model instead")
    if node.has(6):
        raise node.error("lengths of padded keys are not covered")
    if node.real("softcap", 0.0) != 0:
        raise node.error("a softcap is not covered")
    flat = node.fact(0).rank == 3
    heads = node.integer("q_num_heads") if flat else int(node.fact(0).shape[1])
    kv_heads = node.integer("kv_num_heads") if flat else int(node.fact(1).shape[1])
    if heads % kv_heads:
        raise node.error(f"{heads} heads of queries do not share {kv_heads} heads of keys")
    q = _heads(node, 0, heads, "q")
    k, v = (
        _repeated(node, _heads(node, slot, kv_heads, name), heads, name)
        for slot, name in ((1, "k"), (2, "v"))
    )
    fact = node.graph.fact(q)
    scale = node.real("scale", 1 / math.sqrt(int(fact.shape[3])))
    turned = node.wire(Transpose((0, 1, 3, 2)), [k], "k_turned")
    scores = node.wire(MatMul(), [q, turned], "scores")
    scores = node.wire(Elementwise("mul"), [scores, node.scalar_constant(scale, fact, "scale")], "scaled")
    scores = _masked(node, scores)
    weights = node.wire(Softmax(3), [scores], "weights")
    if node.has(3):
        nothing = node.wire(Elementwise("isnan"), [weights], "nothing")
        zero = node.scalar_constant(0, fact, "zero")
        weights = node.wire(Elementwise("where"), [nothing, zero, weights], "cleaned")
    if not flat:
        return node.wire(MatMul(), [weights, v])
    y = node.wire(Transpose((0, 2, 1, 3)), [node.wire(MatMul(), [weights, v], "heads")], "frames")
    batch, frames, _, width = node.graph.fact(y).shape
    return node.wire(Reshape((batch, frames, width * heads)), [y])


def _heads(node: NodeContext, slot: int, heads: int, name: str) -> OutletId:
    """An input as [batch, heads, frames, channels]."""
    x, shape = node.input(slot), node.fact(slot).shape
    if len(shape) == 4:
        return x
    if len(shape) != 3:
        raise node.error(f"{node.fact(slot)} must have 3 or 4 axes")
    batch, frames, width = shape
    inner = exact_quotient([width], [TDim.of(heads)], f"{node.wire_name} (Attention)")
    split = node.wire(Reshape((batch, frames, TDim.of(heads), inner)), [x], f"{name}_split")
    return node.wire(Transpose((0, 2, 1, 3)), [split], f"{name}_heads")


def _repeated(node: NodeContext, x: OutletId, heads: int, name: str) -> OutletId:
    """Each head of keys or values as often as queries share it."""
    batch, own, frames, width = node.graph.fact(x).shape
    times = heads // int(own)
    if times == 1:
        return x
    one, many = TDim.of(1), TDim.of(times)
    apart = node.wire(Reshape((batch, own, one, frames, width)), [x], f"{name}_apart")
    wide = node.wire(Expand((batch, own, many, frames, width)), [apart], f"{name}_repeated")
    return node.wire(Reshape((batch, TDim.of(heads), frames, width)), [wide], f"{name}_shared")


def _masked(node: NodeContext, scores: OutletId) -> OutletId:
    fact = node.graph.fact(scores)
    low = node.scalar_constant(-math.inf, fact, "masked")
    if node.has(3):
        mask = node.input(3)
        unify(
            node.fact(3).shape[-1],
            fact.shape[-1],
            f"{node.wire_name} (Attention): frames of keys and of the mask",
        )
        if node.fact(3).dtype == np.bool_:
            scores = node.wire(Elementwise("where"), [mask, scores, low], "chosen")
        else:
            scores = node.wire(Elementwise("add"), [scores, mask], "biased")
    if not node.flag("is_causal"):
        return scores
    rows, columns = (steps(node, fact.shape[axis], name) for axis, name in ((-2, "rows"), (-1, "columns")))
    seen = node.wire(
        Elementwise("less_equal"), [columns, node.wire(AddAxis(1), [rows], "row_column")], "seen"
    )
    return node.wire(Elementwise("where"), [seen, scores, low], "causal")
