"""Losses of classes: what each frame's right class was given."""

from dataclasses import replace

import numpy as np

from pulse.extend import (
    AddAxis,
    Array,
    Elementwise,
    NodeContext,
    OutletId,
    RangeCheck,
    Reduce,
    Reshape,
    Softmax,
    TDim,
    operator,
)

REDUCTIONS = ("none", "sum", "mean")


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(node: NodeContext) -> OutletId:
    """Return minus the score of the right class, weighed by class; all of them, their sum or their mean."""
    return node.name_result(_loss(node, node.input(0)))


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(node: NodeContext) -> list[OutletId]:
    """Return the loss of the logarithm of the softmax over classes, and that logarithm."""
    names = [*node.outputs, ""][:2]
    scores = node.with_name(names[1]) if names[1] else replace(node, wire_name=f"{node.wire_name}.scores")
    logarithm = scores.wire(Softmax(1, True), [node.input(0)])
    return [node.name_result(_loss(node, logarithm)), logarithm]


def _loss(node: NodeContext, scores: OutletId) -> OutletId:
    reduction = node.text("reduction", "mean")
    if reduction not in REDUCTIONS:
        raise node.error(f"reduction {reduction!r} is not supported; use {', '.join(REDUCTIONS)}")
    fact = node.graph.fact(scores)
    share = _shares(node, scores)
    zero = node.scalar_constant(0, fact, "zero")
    chosen = node.wire(Elementwise("where"), [_hits(node, scores), scores, zero], "chosen")
    weighed = node.wire(Elementwise("mul"), [chosen, share], "weighed")
    by_frame = node.wire(
        Elementwise("neg"), [node.wire(Reduce("sum", (1,), False), [weighed], "each")], "loss"
    )
    if reduction == "none":
        return by_frame
    axes = tuple(range(fact.rank - 1))
    total = node.wire(Reduce("sum", axes, False), [by_frame], "total")
    if reduction == "sum":
        return total
    every = tuple(range(fact.rank))
    count = node.wire(Reduce("sum", every, False), [share], "count")
    return node.wire(Elementwise("div"), [total, count], "mean")


def _hits(node: NodeContext, scores: OutletId) -> OutletId:
    """Return where the class is the right one, [N, C, …]; nowhere for ignored targets."""
    fact = node.graph.fact(scores)
    classes = int(fact.shape[1])
    target = node.cast(node.input(1), np.dtype(np.int64), "target")
    target, ignored = _in_range(node, target, classes)
    column = node.wire(AddAxis(1), [target], "column")
    numbers: Array = np.arange(classes).reshape(-1, *(1,) * (fact.rank - 2))
    hit = node.wire(Elementwise("equal"), [column, node.constant(numbers, "classes")], "hit")
    if ignored is None:
        return hit
    counted = node.wire(Elementwise("not"), [node.wire(AddAxis(1), [ignored], "same")], "counted")
    return node.wire(Elementwise("and"), [hit, counted], "right")


def _in_range(node: NodeContext, target: OutletId, classes: int) -> tuple[OutletId, OutletId | None]:
    """Return the classes, 0 for targets that are ignored, and which those are; others must be classes."""
    ignored = None
    if "ignore_index" in node.attributes:
        number = node.constant(np.array(node.integer("ignore_index")), "ignored")
        ignored = node.wire(Elementwise("equal"), [target, number], "left_out")
        zero = node.constant(np.array(0, np.int64), "first_class")
        target = node.wire(Elementwise("where"), [ignored, zero, target], "kept")
    return node.wire(RangeCheck(0, classes - 1), [target], "class"), ignored


def _shares(node: NodeContext, scores: OutletId) -> OutletId:
    """Return the weight of the right class, zero elsewhere, [N, C, …]."""
    fact = node.graph.fact(scores)
    share = node.cast(_hits(node, scores), fact.dtype, "shares")
    if not node.has(2):
        return share
    shape = (node.fact(2).shape[0], *(TDim.of(1),) * (fact.rank - 2))
    weights = node.wire(Reshape(shape), [node.input(2)], "weights")
    return node.wire(Elementwise("mul"), [share, weights], "class_shares")
