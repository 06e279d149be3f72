"""Find attention of limited reach in a graph: product of queries and keys, mask, softmax, product with values."""

from collections.abc import Hashable
from dataclasses import field, replace

import numpy as np

from pulse.dim import Symbol
from pulse.errors import Refusal
from pulse.facts import Array, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.attention import BandedAttention
from pulse.ops.norm import Softmax
from pulse.ops.op import Op
from pulse.ops.shape import Transpose, matrix_transpose
from pulse.patch import Patch
from pulse.pulsify.bands.attention_refusals import NoBandError, refuse_attention, refuse_unknown_scores
from pulse.pulsify.bands.attention_sums import join_products
from pulse.pulsify.bands.mask import Band, Mask, ScoreStep
from pulse.pulsify.bands.readers import Reader, find_readers
from pulse.pulsify.bands.relative_pairs import pairs_near
from pulse.pulsify.bands.relative_shift import (
    SHORT_ROW_COUNTS,
    RelativeScores,
    join_positions,
    positions_near,
)
from pulse.pulsify.bands.scores import hiding_conditions, trace_scores
from pulse.pulsify.bands.static_wires import StaticWires
from pulse.pulsify.stream_lengths import longest_stream
from pulse.support.record import record
from pulse.support.wording import spell
from pulse.typed import TypedGraph, TypedNetwork


@record
class Attention:
    """``softmax(scale * q @ k + bias) @ v``: the product of q and k, the steps up to the softmax, the readers.

    softmax   node of the softmax
    product   node of the product of q and k
    steps     the steps from the product to the softmax
    scale     the factor of the product
    readers   the products of the weights with v
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

    model    the rewritten model
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
    static = StaticWires(graph)
    bands: dict[Hashable, Band | NoBandError] = {}
    for node_id in graph.order():
        attention = _attention(graph, graph.nodes[node_id], symbol, static)
        if attention is None:
            refusals = refuse_unknown_scores(graph, graph.nodes[node_id], symbol, static)
            result.refused = {**refusals, **result.refused}
            continue
        cache_key = _cache_key(graph, attention)
        if cache_key not in bands:
            bands[cache_key] = _band(result.model, symbol, attention, max_context)
        band = bands[cache_key]
        near = None
        if isinstance(band, Band) and attention.relative is not None:
            band, near = _band_of_positions(result.model, symbol, attention, band, max_context)
        if isinstance(band, NoBandError):
            softmax, product = graph.nodes[attention.softmax], graph.nodes[attention.product]
            refusals = refuse_attention(graph, softmax, product, symbol, static, band.reason, band.advice)
            result.refused = {**refusals, **result.refused}
            continue
        result.limited |= band.limited
        for reader in attention.readers:
            _rewrite(graph, attention, reader, band, near)
    result.model = result.model.copy()
    return result


def _attention(
    graph: TypedGraph, node: Node[TypedFact, Op], symbol: Symbol, static: StaticWires
) -> Attention | None:
    if not isinstance(node.op, Softmax) or node.op.log or not node.outputs:
        return None
    fact = node.outputs[0].fact
    axes = [fact.rank - 2, fact.rank - 1]
    if node.op.axis != axes[1] or fact.symbolic_axes(symbol) != axes or static(OutletId(node.id)):
        return None
    path = trace_scores(graph, node.inputs[0], symbol, static)
    if path is None:
        return None
    product, steps, scale, relative = path
    q, k = (graph.fact(outlet) for outlet in graph.nodes[product].inputs)
    scores = graph.fact(OutletId(product)).shape
    if not scores[-1].prove_eq(scores[-2]).yes or any(dim.symbols - {symbol} for dim in scores):
        return None
    if symbol not in q.shape[-2].symbols or k.rank < 2 or symbol not in k.shape[-1].symbols:
        return None
    readers = tuple(find_readers(graph, OutletId(node.id), symbol, scores, hiding_conditions(graph, steps)))
    return Attention(node.id, product, steps, scale, readers, relative) if readers else None


def _band_of_positions(
    model: TypedNetwork, symbol: Symbol, attention: Attention, band: Band, max_context: int | None
) -> tuple[Band | NoBandError, Array | None]:
    """Return the band and its table of positions; a table known up to ``max_context`` alone limits the band."""
    assert attention.relative is not None
    table = model.graph.nodes[attention.relative.product].inputs[1]
    mask = _mask(model, symbol, attention, max_context)
    end, ahead = mask.longest(), band.bias.shape[-1] - 1 - band.back
    if attention.relative.causal and ahead > 0:
        reason = "frames ahead are read, but there are relative positions only for earlier ones"
        return NoBandError(
            reason, "hide what is ahead (a causal mask), or give positions for all distances"
        ), None
    if attention.relative.pairs:
        distances = pairs_near(mask, attention.relative, band.back, max(0, ahead))
        if isinstance(distances, str):
            return NoBandError(distances, "compute them from positions (arange), and clip them"), None
        return band, _scale_positions(distances, band, attention.relative)
    if end is None:
        reason = "its relative positions are computed for each length of the stream"
        return NoBandError(reason, f"give {spell('max_context')}, or slice them from a table"), None
    lengths = (end, end - 1, 2 * (band.back + abs(ahead)) + 3, *SHORT_ROW_COUNTS)
    values = dict(mask.values(table, lengths))
    near = positions_near(values, band.back, max(0, ahead))
    if near is None:
        return NoBandError("its relative positions change with the length of the stream"), None
    limit = longest_stream(symbol, model.scope.assumptions)
    return replace(band, limited=band.limited or limit is None), _scale_positions(
        near, band, attention.relative
    )


def _scale_positions(near: Array, band: Band, relative: RelativeScores) -> Array:
    """Return the positions of the band, times the factor of their scores."""
    return near[..., : band.bias.shape[-1]] * np.float32(relative.factor)


def _cache_key(graph: TypedGraph, attention: Attention) -> Hashable:
    """Return a cache key of the band, since layers often share a mask."""
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
    try:
        return _mask(model, symbol, attention, max_context).band()
    except NoBandError as error:
        return error


def _mask(model: TypedNetwork, symbol: Symbol, attention: Attention, max_context: int | None) -> Mask:
    product = OutletId(attention.product)
    return Mask(model.graph, symbol, model.scope.assumptions, product, attention.steps, max_context)


def _rewrite(graph: TypedGraph, attention: Attention, reader: Reader, band: Band, near: Array | None) -> None:
    product, old = graph.nodes[attention.product], OutletId(reader.node)
    name = graph.label(old)
    op = BandedAttention(
        attention.scale,
        _with_batch_axes(graph, attention, band.bias),
        band.back,
        0.0 if reader.cleaned else np.nan,
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
        patch.shunt(old, patch.wire(name, Transpose(matrix_transpose(patch.graph.fact(y).rank)), [y])[0])
    patch.apply()


def _transpose(graph: TypedGraph, patch: Patch, outlet: OutletId, name: str) -> OutletId:
    """Return a wire with its last two axes exchanged; undoes an existing transpose instead of adding one."""
    node = graph.node(outlet)
    perm = matrix_transpose(graph.fact(outlet).rank)
    if isinstance(node.op, Transpose):
        outlet, perm = node.inputs[0], tuple(node.op.perm[axis] for axis in perm)
    inside = patch.tap(outlet)
    return inside if perm == tuple(range(len(perm))) else patch.wire(name, Transpose(perm), [inside])[0]


def _with_batch_axes(graph: TypedGraph, attention: Attention, bias: np.ndarray) -> np.ndarray:
    """Broadcast the table over the batch axes of the scores, unless all of them share it."""
    flat = bias.reshape(-1, *bias.shape[-2:])
    if (flat == flat[:1]).all():
        return flat[0]
    batch = [int(dim) for dim in graph.fact(OutletId(attention.product)).shape[:-2]]
    return bias.reshape(*batch, *bias.shape[-2:]) if int(np.prod(batch)) == len(flat) else bias
