"""Find attention of limited reach in a graph: product of queries and keys, mask, softmax, product with values."""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from pulse.dim import Symbol
from pulse.errors import Refusal
from pulse.facts import Array, Shape, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.attention import BandedAttention
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.op import Op
from pulse.ops.shape import AddAxis, RemoveAxis, Reshape, Transpose
from pulse.ops.source import Source
from pulse.patch import Patch
from pulse.pulsify.bands.attention_refusals import refuse_attention, refuse_unknown_scores
from pulse.pulsify.bands.attention_sums import join_products
from pulse.pulsify.bands.mask import MASKED, Band, Mask, NoBandError, ScoreStep
from pulse.pulsify.bands.relative_pairs import find_pairs, pairs_near
from pulse.pulsify.bands.relative_shift import (
    SHORT,
    RelativeScores,
    find_shift,
    join_positions,
    positions_near,
)
from pulse.pulsify.limit import longest_stream
from pulse.support.record import record
from pulse.support.wording import spell
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
    """``softmax(scale * q @ k + bias) @ v``: the product of q and k, the steps up to the softmax, the readers.

    relative  scores by relative position, added to the product
    """

    softmax: int
    product: int
    steps: tuple[ScoreStep, ...]
    scale: float
    readers: tuple[Reader, ...]
    relative: RelativeScores | None = None


@record(frozen=False)
class BandedModel:
    """A model whose attentions of limited reach are written as ``BandedAttention``.

    refused  name of a node of an unlimited attention -> the refusal, None if another node reports it
    limited  whether only ``max_context`` limits the reach of some attention
    """

    model: TypedNetwork
    refused: dict[str, Refusal | None] = field(default_factory=dict[str, "Refusal | None"])
    limited: bool = False


def band_attention(model: TypedNetwork, symbol: Symbol, max_context: int | None = None) -> BandedModel:
    """Rewrite every attention over the stream whose reach is limited, or limited by ``max_context`` frames.

    The pattern is ``softmax(q @ transpose(k)) @ v``, with scales and masks before the softmax. The masks are functions
    of positions and lengths alone; running them shows which pairs they allow.
    """
    result = BandedModel(model.copy())
    graph = result.model.graph
    join_products(graph, symbol)
    static = _StaticWires(graph)
    bands: dict[Hashable, Band | NoBandError] = {}
    for node_id in graph.order():
        attention = _attention(graph, graph.nodes[node_id], symbol, static)
        if attention is None:
            refusals = refuse_unknown_scores(graph, graph.nodes[node_id], symbol, static)
            result.refused = {**refusals, **result.refused}
            continue
        same = _key(graph, attention)
        if same not in bands:
            bands[same] = _band(result.model, symbol, attention, max_context)
        band = bands[same]
        near = None
        if isinstance(band, Band) and attention.relative is not None:
            band, near = _near(result.model, symbol, attention, band, max_context)
        if isinstance(band, NoBandError):
            softmax, product = graph.nodes[attention.softmax], graph.nodes[attention.product]
            refusals = refuse_attention(graph, softmax, product, symbol, static, band.reason, band.help)
            result.refused = {**refusals, **result.refused}
            continue
        result.limited |= band.limited
        for reader in attention.readers:
            _rewrite(graph, attention, reader, band, near)
    result.model = result.model.copy()
    return result


class _StaticWires:
    """The set of wires that depend on lengths and constants alone, found on demand."""

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self._is_static: dict[int, bool] = {}

    def __call__(self, outlet: OutletId) -> bool:
        pending = [outlet.node]
        while pending:
            node = self.graph.nodes[pending[-1]]
            waiting = [source.node for source in node.inputs if source.node not in self._is_static]
            if waiting:
                pending += waiting
                continue
            self._is_static[node.id] = not isinstance(node.op, Source) and all(
                self._is_static[source.node] for source in node.inputs
            )
            pending.pop()
        return self._is_static[outlet.node]


def _attention(
    graph: TypedGraph, node: Node[TypedFact, Op], symbol: Symbol, static: _StaticWires
) -> Attention | None:
    if not isinstance(node.op, Softmax) or node.op.log or not node.outputs:
        return None
    fact = node.outputs[0].fact
    axes = [fact.rank - 2, fact.rank - 1]
    if node.op.axis != axes[1] or fact.symbolic_axes(symbol) != axes or static(OutletId(node.id)):
        return None
    path = _trace_scores(graph, node.inputs[0], symbol, static)
    if path is None:
        return None
    product, steps, scale, relative = path
    q, k = (graph.fact(outlet) for outlet in graph.nodes[product].inputs)
    scores = graph.fact(OutletId(product)).shape
    if not scores[-1].prove_eq(scores[-2]).yes or any(dim.symbols - {symbol} for dim in scores):
        return None
    if symbol not in q.shape[-2].symbols or k.rank < 2 or symbol not in k.shape[-1].symbols:
        return None
    readers = tuple(_readers(graph, OutletId(node.id), symbol, scores, _hiding_conditions(graph, steps)))
    return Attention(node.id, product, steps, scale, readers, relative) if readers else None


def _trace_scores(
    graph: TypedGraph, outlet: OutletId, symbol: Symbol, static: _StaticWires
) -> tuple[int, tuple[ScoreStep, ...], float, RelativeScores | None] | None:
    """Trace scores up to their product: its node, the steps in order, their scale, and what is added to the product."""
    steps: list[ScoreStep] = []
    scale = 1.0
    while True:
        node = graph.node(outlet)
        if isinstance(node.op, MatMul):
            return node.id, tuple(reversed(steps)), scale, None
        slots = [slot for slot, source in enumerate(node.inputs) if not static(source)]
        if len(slots) == 2 and isinstance(node.op, Elementwise) and node.op.kind == "add":
            product, own_steps, own_scale, relative = _relative_scores(graph, node, symbol, static)
            every = tuple(reversed([*steps, *own_steps]))
            return None if relative is None else (product, every, scale * own_scale, relative)
        if len(slots) != 1 or not _keeps_scores(graph, node, slots[0]):
            return None
        if isinstance(node.op, Elementwise):
            factor = _factor(graph, node, slots[0])
            if factor is None:
                return None
            scale *= factor
        steps.append(ScoreStep(node.id, slots[0]))
        outlet = node.inputs[slots[0]]


def _relative_scores(
    graph: TypedGraph, node: Node[TypedFact, Op], symbol: Symbol, static: _StaticWires
) -> tuple[int, list[ScoreStep], float, RelativeScores | None]:
    """The product, how it is scaled before the sum, and the relative scores."""
    for place, other in (node.inputs, node.inputs[::-1]):
        product, steps, scale = _without_scale(graph, place)
        if isinstance(graph.node(product).op, MatMul):
            scores, _, factor = _without_scale(graph, other)
            rows = graph.fact(product).shape[-1]
            relative = find_shift(graph, scores, symbol, rows) or find_pairs(graph, scores, symbol, rows)
            if relative is not None and static(graph.nodes[relative.product].inputs[1]):
                return product.node, steps, scale, replace(relative, factor=factor / scale)
    return 0, [], 1.0, None


def _without_scale(graph: TypedGraph, outlet: OutletId) -> tuple[OutletId, list[ScoreStep], float]:
    """Strip multiplications by constants from a wire: the unscaled wire, the steps removed (last first), the scale."""
    steps, scale = list[ScoreStep](), 1.0
    while True:
        node = graph.node(outlet)
        if not isinstance(node.op, Elementwise) or node.op.kind not in ("mul", "div"):
            return outlet, steps, scale
        slot = int(graph.fact(node.inputs[0]).value is not None)
        factor = _factor(graph, node, slot) if _keeps_scores(graph, node, slot) else None
        if factor is None:
            return outlet, steps, scale
        steps.append(ScoreStep(node.id, slot))
        scale *= factor
        outlet = node.inputs[slot]


def _near(
    model: TypedNetwork, symbol: Symbol, attention: Attention, band: Band, max_context: int | None
) -> tuple[Band | NoBandError, Array | None]:
    """The band and its table of positions; the band is limited if the table is known only up to ``max_context``."""
    assert attention.relative is not None
    table = model.graph.nodes[attention.relative.product].inputs[1]
    mask = Mask(
        model.graph,
        symbol,
        model.scope.assumptions,
        OutletId(attention.product),
        attention.steps,
        max_context,
    )
    end, ahead = mask.longest(), band.bias.shape[-1] - 1 - band.back
    if attention.relative.causal and ahead > 0:
        why = "frames ahead are seen, and there are relative positions only for those behind"
        return NoBandError(
            why, "hide what is ahead (a causal mask), or give positions for all distances"
        ), None
    if attention.relative.pairs:
        near = pairs_near(mask, attention.relative, band.back, max(0, ahead))
        if isinstance(near, str):
            return NoBandError(near, "compute them of positions (arange), and clip them"), None
        return band, near[..., : band.bias.shape[-1]] * np.float32(attention.relative.factor)
    if end is None:
        why = "its relative positions are computed for each length of the stream"
        return NoBandError(why, f"give {spell('max_context')}, or slice them from a table"), None
    lengths = (end, end - 1, 2 * (band.back + abs(ahead)) + 3, *SHORT)
    values = dict(mask.values(table, lengths))
    near = positions_near(values, band.back, max(0, ahead))
    if near is None:
        return NoBandError("its relative positions change with the length of the stream"), None
    limit = longest_stream(symbol, model.scope.assumptions)
    return replace(band, limited=band.limited or limit is None), near[
        ..., : band.bias.shape[-1]
    ] * np.float32(attention.relative.factor)


def _keeps_scores(graph: TypedGraph, node: Node[TypedFact, Op], slot: int) -> bool:
    """Whether the op leaves each score at its row and column (the last two axes)."""
    before, after = graph.fact(node.inputs[slot]), node.outputs[0].fact
    if before.rank < 2 or after.rank < 2 or not _same_shape(before.shape[-2:], after.shape[-2:]):
        return False
    if isinstance(node.op, Cast):
        return np.issubdtype(node.op.dtype, np.floating)
    if isinstance(node.op, REGROUPED):
        return True
    same = _same_shape(before.shape, after.shape)
    return isinstance(node.op, Elementwise) and node.op.kind in AFFINE and same


def _same_shape(left: Shape, right: Shape) -> bool:
    """Whether two shapes are the same for every allowed length."""
    return len(left) == len(right) and all(a.prove_eq(b).yes for a, b in zip(left, right))


def _factor(graph: TypedGraph, node: Node[TypedFact, Op], slot: int) -> float | None:
    """The factor by which an elementwise op multiplies its scores, None if it does something else."""
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
    hiding: Collection[tuple[OutletId, int]],
    cleaned: bool = False,
    flipped: bool = False,
) -> Iterator[Reader]:
    """Products of values with weights whose axes are in the order of the scores.

    hiding   conditions that mask scores, and the slot of the scores
    """
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
            yield from _readers(graph, outlet, symbol, scores, hiding, cleaned, flipped)
        elif isinstance(node.op, Transpose) and not flipped:
            rank = len(node.op.perm)
            if node.op.perm == (*range(rank - 2), rank - 1, rank - 2):
                yield from _readers(graph, outlet, symbol, scores, hiding, cleaned, True)
        elif isinstance(node.op, REGROUPED) and not flipped:
            before, after = graph.fact(weights).shape, graph.fact(outlet).shape
            if len(after) > 1 and _same_shape(before[-2:], after[-2:]):
                yield from _readers(graph, outlet, symbol, scores, hiding, cleaned, flipped)
        elif (inlet.slot == 2 and _cleans(graph, node, weights)) or (
            (node.inputs[0], inlet.slot) in hiding and _is_zero(graph, node, 3 - inlet.slot)
        ):
            yield from _readers(graph, outlet, symbol, scores, hiding, True, flipped)


def _cleans(graph: TypedGraph, node: Node[TypedFact, Op], weights: OutletId) -> bool:
    """Whether it is ``where(isnan(weights), 0, weights)``."""
    if not isinstance(node.op, Elementwise) or node.op.kind != "where":
        return False
    test = graph.node(node.inputs[0])
    is_nan = isinstance(test.op, Elementwise) and test.op.kind == "isnan" and test.inputs == [weights]
    return is_nan and _is_zero(graph, node, 1)


def _is_zero(graph: TypedGraph, node: Node[TypedFact, Op], slot: int) -> bool:
    """Whether the other branch of ``where`` is all zeros."""
    if not isinstance(node.op, Elementwise) or node.op.kind != "where":
        return False
    value = graph.fact(node.inputs[slot]).value
    return value is not None and not value.any()


def _hiding_conditions(graph: TypedGraph, steps: Sequence[ScoreStep]) -> set[tuple[OutletId, int]]:
    """The conditions that replace scores by masked numbers, each with the input slot of the scores.

    The weights there are 0 already, or all weights of the row are NaN.
    """
    conditions: set[tuple[OutletId, int]] = set()
    for step in steps:
        node = graph.nodes[step.node]
        if isinstance(node.op, Elementwise) and node.op.kind == "where":
            value = graph.fact(node.inputs[3 - step.slot]).value
            if value is not None and (value <= MASKED).all():
                conditions.add((node.inputs[0], step.slot))
    return conditions


def _key(graph: TypedGraph, attention: Attention) -> Hashable:
    """A cache key of the band, since layers often share a mask."""
    fact = graph.fact(OutletId(attention.product))
    steps: list[Hashable] = []
    for step in attention.steps:
        node = graph.nodes[step.node]
        others = tuple(source for slot, source in enumerate(node.inputs) if slot != step.slot)
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


def _rewrite(
    graph: TypedGraph, attention: Attention, reader: Reader, band: Band, near: Array | None = None
) -> None:
    product, old = graph.nodes[attention.product], OutletId(reader.node)
    name = graph.label(old)
    op = BandedAttention(
        attention.scale, _lead(graph, attention, band.bias), band.back, 0.0 if reader.cleaned else np.nan
    )
    patch = Patch(graph)
    q = patch.tap(product.inputs[0])
    k = _transpose(graph, patch, product.inputs[1], f"{name}.k")
    if attention.relative is not None and near is not None:
        q, k = join_positions(
            graph=graph,
            patch=patch,
            relative_scores=attention.relative,
            near=near,
            back=band.back,
            q=q,
            k=k,
            name=name,
        )
    values = graph.nodes[reader.node].inputs[0 if reader.flipped else 1]
    if not reader.flipped:
        patch.shunt(old, patch.wire(name, op, [q, k, patch.tap(values)])[0])
    else:
        v = _transpose(graph, patch, values, f"{name}.v")
        y = patch.wire(f"{name}.rows", op, [q, k, v])[0]
        patch.shunt(old, patch.wire(name, Transpose(_last_two(patch.graph.fact(y).rank)), [y])[0])
    patch.apply()


def _transpose(graph: TypedGraph, patch: Patch, outlet: OutletId, name: str) -> OutletId:
    """A wire with its last two axes exchanged; undoes an existing transpose instead of adding one."""
    node = graph.node(outlet)
    perm = _last_two(graph.fact(outlet).rank)
    if isinstance(node.op, Transpose):
        outlet, perm = node.inputs[0], tuple(node.op.perm[axis] for axis in perm)
    inside = patch.tap(outlet)
    return inside if perm == tuple(range(len(perm))) else patch.wire(name, Transpose(perm), [inside])[0]


def _last_two(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def _lead(graph: TypedGraph, attention: Attention, bias: np.ndarray) -> np.ndarray:
    """Broadcast the table over the batch axes of the scores, unless all of them share it."""
    flat = bias.reshape(-1, *bias.shape[-2:])
    if (flat == flat[:1]).all():
        return flat[0]
    lead = [int(dim) for dim in graph.fact(OutletId(attention.product)).shape[:-2]]
    return bias.reshape(*lead, *bias.shape[-2:]) if int(np.prod(lead)) == len(flat) else bias
