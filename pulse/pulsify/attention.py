"""Attention with limited reach, found in a graph: the product of queries and keys, a mask, a softmax, a product."""

from collections.abc import Hashable, Iterator
from dataclasses import field

import numpy as np

from pulse.dim import Symbol
from pulse.errors import Refusal
from pulse.facts import Shape, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.attention import BandedAttention
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.op import Op
from pulse.ops.shape import AddAxis, RemoveAxis, Reshape, Transpose
from pulse.ops.source import Source
from pulse.patch import Patch
from pulse.pulsify.mask import Band, Mask, NoBandError, ScoreStep
from pulse.record import record
from pulse.typed import TypedGraph, TypedNetwork

AFFINE = ("add", "sub", "mul", "div", "where")
REGROUPED = (Reshape, AddAxis, RemoveAxis)


@record
class Reader:
    """A product of weights with values.

    node     the MatMul
    flipped  whether it is ``transpose(v) @ transpose(weights)``
    cleaned  whether NaN weights are replaced by zeros before
    """

    node: int
    flipped: bool
    cleaned: bool


@record
class Attention:
    """``softmax(scale * q @ k + bias) @ v``: the product of q and k, the steps before the softmax, the readers."""

    softmax: int
    product: int
    steps: tuple[ScoreStep, ...]
    scale: float
    readers: tuple[Reader, ...]


@record(frozen=False)
class BandedModel:
    """A model with its attentions of limited reach written as such.

    refused  nodes by name that belong to an attention without limit: why, None if another node reports it
    limited  whether some reach is limited by ``max_context`` only
    """

    model: TypedNetwork
    refused: dict[str, Refusal | None] = field(default_factory=dict[str, "Refusal | None"])
    limited: bool = False


def band_attention(model: TypedNetwork, symbol: Symbol, max_context: int | None = None) -> BandedModel:
    """Rewrite every attention over the stream whose reach is limited, or limited by ``max_context`` frames.

    Softmax over the last axis of ``q @ transpose(k)``, between them scales, and masks that are functions of
    positions and lengths alone; then a product with values. What the mask allows is found by running it.
    """
    if not any(isinstance(node.op, Softmax) for node in model.graph.nodes):
        return BandedModel(model)
    result = BandedModel(model.copy())
    graph = result.model.graph
    static = _StaticWires(graph)
    bands: dict[Hashable, Band | NoBandError] = {}
    for node_id in graph.order():
        attention = _attention(graph, graph.nodes[node_id], symbol, static)
        if attention is None:
            continue
        same = _key(graph, attention)
        if same not in bands:
            bands[same] = _band(result.model, symbol, attention, max_context)
        band = bands[same]
        if isinstance(band, NoBandError):
            _refuse(result, symbol, attention, static, band)
            continue
        result.limited |= band.limited
        for reader in attention.readers:
            _rewrite(graph, attention, reader, band)
    result.model = result.model.copy()
    return result


class _StaticWires:
    """Which wires depend on lengths and constants alone."""

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self._known: dict[int, bool] = {}

    def __call__(self, outlet: OutletId) -> bool:
        pending = [outlet.node]
        while pending:
            node = self.graph.nodes[pending[-1]]
            waiting = [read.node for read in node.inputs if read.node not in self._known]
            if waiting:
                pending += waiting
                continue
            self._known[node.id] = not isinstance(node.op, Source) and all(
                self._known[read.node] for read in node.inputs
            )
            pending.pop()
        return self._known[outlet.node]


def _attention(
    graph: TypedGraph, node: Node[TypedFact, Op], symbol: Symbol, static: _StaticWires
) -> Attention | None:
    if not isinstance(node.op, Softmax) or node.op.log or not node.outputs:
        return None
    fact = node.outputs[0].fact
    axes = [fact.rank - 2, fact.rank - 1]
    if node.op.axis != axes[1] or fact.symbolic_axes(symbol) != axes or static(OutletId(node.id)):
        return None
    traced = _trace_scores(graph, node.inputs[0], static)
    if traced is None:
        return None
    product, steps, scale = traced
    q, k = (graph.fact(outlet) for outlet in graph.nodes[product].inputs)
    scores = graph.fact(OutletId(product)).shape
    if not scores[-1].prove_eq(scores[-2]).yes or any(dim.symbols - {symbol} for dim in scores):
        return None
    if symbol not in q.shape[-2].symbols or k.rank < 2 or symbol not in k.shape[-1].symbols:
        return None
    readers = tuple(_readers(graph, OutletId(node.id), symbol, scores))
    return Attention(node.id, product, steps, scale, readers) if readers else None


def _trace_scores(
    graph: TypedGraph, outlet: OutletId, static: _StaticWires
) -> tuple[int, tuple[ScoreStep, ...], float] | None:
    """From the softmax up to the product: its node, the steps in the order of the scores, and their scale."""
    steps: list[ScoreStep] = []
    scale = 1.0
    while True:
        node = graph.node(outlet)
        if isinstance(node.op, MatMul):
            return node.id, tuple(reversed(steps)), scale
        slots = [slot for slot, read in enumerate(node.inputs) if not static(read)]
        if len(slots) != 1 or not _keeps_scores(graph, node, slots[0]):
            return None
        if isinstance(node.op, Elementwise):
            factor = _factor(graph, node, slots[0])
            if factor is None:
                return None
            scale *= factor
        steps.append(ScoreStep(node.id, slots[0]))
        outlet = node.inputs[slots[0]]


def _keeps_scores(graph: TypedGraph, node: Node[TypedFact, Op], slot: int) -> bool:
    """Whether each score stays where it is, the last two axes being rows and columns."""
    before, after = graph.fact(node.inputs[slot]), node.outputs[0].fact
    if before.rank < 2 or after.rank < 2 or not _same_shape(before.shape[-2:], after.shape[-2:]):
        return False
    if isinstance(node.op, Cast):
        return np.issubdtype(node.op.dtype, np.floating)
    if isinstance(node.op, REGROUPED):
        return True
    kept = _same_shape(before.shape, after.shape)
    return isinstance(node.op, Elementwise) and node.op.kind in AFFINE and kept


def _same_shape(left: Shape, right: Shape) -> bool:
    """Whether two shapes are the same for every allowed length."""
    return len(left) == len(right) and all(a.prove_eq(b).yes for a, b in zip(left, right))


def _factor(graph: TypedGraph, node: Node[TypedFact, Op], slot: int) -> float | None:
    """By what an elementwise op multiplies its scores."""
    assert isinstance(node.op, Elementwise)
    kind = node.op.kind
    if kind == "where":
        return 1.0 if slot > 0 else None
    if kind in ("add", "sub"):
        return -1.0 if (kind, slot) == ("sub", 1) else 1.0
    value = graph.fact(node.inputs[1 - slot]).value
    if value is None or value.size != 1 or (kind == "div" and slot == 1):
        return None
    number = float(value.reshape(()).item())
    if number == 0 or not np.isfinite(number):
        return None
    return number if kind == "mul" else 1 / number


def _readers(
    graph: TypedGraph,
    weights: OutletId,
    symbol: Symbol,
    scores: Shape,
    cleaned: bool = False,
    flipped: bool = False,
) -> Iterator[Reader]:
    """The products of values and weights that lie as the scores did when they were made."""
    same = _same_shape(graph.fact(weights).shape, scores)
    for inlet in graph.outlet(weights).successors:
        node = graph.nodes[inlet.node]
        outlet = OutletId(node.id)
        if isinstance(node.op, MatMul):
            values = graph.fact(node.inputs[1 - inlet.slot])
            axis = -1 if flipped else -2
            if (
                inlet.slot == int(flipped)
                and values.rank > 1
                and symbol in values.shape[axis].symbols
                and same
            ):
                yield Reader(node.id, flipped, cleaned)
        elif isinstance(node.op, Cast) and node.op.dtype == graph.fact(weights).dtype:
            yield from _readers(graph, outlet, symbol, scores, cleaned, flipped)
        elif isinstance(node.op, Transpose) and not flipped:
            rank = len(node.op.perm)
            if node.op.perm == (*range(rank - 2), rank - 1, rank - 2):
                yield from _readers(graph, outlet, symbol, scores, cleaned, True)
        elif isinstance(node.op, REGROUPED) and not flipped:
            before, after = graph.fact(weights).shape, graph.fact(outlet).shape
            if len(after) > 1 and _same_shape(before[-2:], after[-2:]):
                yield from _readers(graph, outlet, symbol, scores, cleaned, flipped)
        elif inlet.slot == 2 and _cleans(graph, node, weights):
            yield from _readers(graph, outlet, symbol, scores, True, flipped)


def _cleans(graph: TypedGraph, node: Node[TypedFact, Op], weights: OutletId) -> bool:
    """Whether it is ``where(isnan(weights), 0, weights)``."""
    if not isinstance(node.op, Elementwise) or node.op.kind != "where":
        return False
    test, zero = graph.node(node.inputs[0]), graph.fact(node.inputs[1]).value
    return (
        isinstance(test.op, Elementwise)
        and test.op.kind == "isnan"
        and test.inputs == [weights]
        and zero is not None
        and not zero.any()
    )


def _key(graph: TypedGraph, attention: Attention) -> Hashable:
    """What the band depends on: layers often share a mask."""
    fact = graph.fact(OutletId(attention.product))
    steps: list[Hashable] = []
    for step in attention.steps:
        node = graph.nodes[step.node]
        others = tuple(read for slot, read in enumerate(node.inputs) if slot != step.slot)
        steps.append((node.op, step.slot, others))
    return fact.dtype, fact.shape, tuple(steps)


def _band(
    model: TypedNetwork, symbol: Symbol, attention: Attention, max_context: int | None
) -> Band | NoBandError:
    product = OutletId(attention.product)
    try:
        return Mask(
            model.graph, symbol, model.scope.assumptions, product, attention.steps, max_context
        ).band()
    except NoBandError as why:
        return why


def _rewrite(graph: TypedGraph, attention: Attention, reader: Reader, band: Band) -> None:
    product, old = graph.nodes[attention.product], OutletId(reader.node)
    name = graph.label(old)
    op = BandedAttention(
        attention.scale, _lead(graph, attention, band.bias), band.back, 0.0 if reader.cleaned else np.nan
    )
    patch = Patch(graph)
    q = patch.tap(product.inputs[0])
    k = _transpose(graph, patch, product.inputs[1], f"{name}.k")
    values = graph.nodes[reader.node].inputs[0 if reader.flipped else 1]
    if not reader.flipped:
        patch.shunt(old, patch.wire(name, op, [q, k, patch.tap(values)])[0])
    else:
        v = _transpose(graph, patch, values, f"{name}.v")
        y = patch.wire(f"{name}.rows", op, [q, k, v])[0]
        patch.shunt(old, patch.wire(name, Transpose(_last_two(patch.graph.fact(y).rank)), [y])[0])
    patch.apply()


def _transpose(graph: TypedGraph, patch: Patch, outlet: OutletId, name: str) -> OutletId:
    """A wire with its last two axes exchanged, without a transpose if one is undone."""
    node = graph.node(outlet)
    perm = _last_two(graph.fact(outlet).rank)
    if isinstance(node.op, Transpose):
        outlet, perm = node.inputs[0], tuple(node.op.perm[axis] for axis in perm)
    inside = patch.tap(outlet)
    return inside if perm == tuple(range(len(perm))) else patch.wire(name, Transpose(perm), [inside])[0]


def _last_two(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def _lead(graph: TypedGraph, attention: Attention, bias: np.ndarray) -> np.ndarray:
    """The table for the batch axes of the scores; without them where all have the same."""
    flat = bias.reshape(-1, *bias.shape[-2:])
    if (flat == flat[:1]).all():
        return flat[0]
    lead = [int(dim) for dim in graph.fact(OutletId(attention.product)).shape[:-2]]
    return bias.reshape(*lead, *bias.shape[-2:]) if int(np.prod(lead)) == len(flat) else bias


def _refuse(
    result: BandedModel, symbol: Symbol, attention: Attention, static: _StaticWires, why: NoBandError
) -> None:
    """One refusal for all nodes that an attention without limit is made of."""
    graph = result.model.graph
    product = graph.nodes[attention.product]
    axis = graph.fact(product.inputs[0]).rank - 2
    softmax = graph.nodes[attention.softmax].name
    refusal = Refusal(product.name, "attention", axis, "whole", f"(softmax {softmax}) {why.reason}", why.help)
    seen: set[int] = set()
    pending = [attention.softmax]
    while pending:
        node = graph.nodes[pending.pop()]
        if node.id in seen or node.id == attention.product:
            continue
        seen.add(node.id)
        if any(len(outlet.fact.symbolic_axes(symbol)) > 1 for outlet in node.outputs):
            result.refused.setdefault(node.name)
        pending += [
            read.node
            for read in node.inputs
            if node.id == attention.softmax or static(read) or _step(attention, read)
        ]
    result.refused[product.name] = refusal


def _step(attention: Attention, read: OutletId) -> bool:
    return read.node in {step.node for step in attention.steps}
