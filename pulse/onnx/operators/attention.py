"""Attention as one node, and banded attention, written as products over the window with a mask by position."""

import math

import numpy as np

from pulse.dim import ZERO, TDim
from pulse.facts import F32, I64, Array, TypedFact
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.source import steps
from pulse.onnx.registry import onnx_op
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.attention import BandedAttention, BandedAttentionStream
from pulse.ops.concat import Concat
from pulse.ops.conv import NO_PAD
from pulse.ops.dims import unify
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Expand, Reshape, Transpose, exact_quotient, matrix_transpose
from pulse.support.record import record
from pulse.support.wording import count_of

MASK, PAST_KEY, PAST_VALUE, VALID = 3, 4, 5, 6
"""Slots of the optional inputs: mask, keys and values of the past, how many keys are not padding."""


@record
class Scores:
    """The possible contents of the node's fourth output, in the order of ``qk_matmul_output_mode``."""

    product: OutletId
    capped: OutletId
    masked: OutletId
    weights: OutletId

    def choose(self, node: NodeContext) -> OutletId:
        """Return the scores that an attribute chooses. Raises LoadError: it has another value."""
        mode = node.integer("qk_matmul_output_mode", 0)
        outputs = (self.product, self.capped, self.masked, self.weights)
        node.require(0 <= mode < len(outputs), f"qk_matmul_output_mode {mode} is not one of 0 to 3")
        return outputs[mode]


@onnx_op("Attention")
def attention(node: NodeContext) -> list[OutletId]:
    """Wire softmax(scale * q @ transpose(k) + mask) @ v, with past keys and values prepended.

    Half precision is for the inputs and outputs only: everything between them is computed in f32.
    """
    for slot, name in enumerate(("queries", "keys", "values")):
        node.require_rank(slot, (3, 4), name)
    flat = node.fact(0).rank == 3
    if flat:
        heads = node.divisor("q_num_heads", node.fact(0).shape[2], "channels of its queries")
        kv_heads = node.divisor("kv_num_heads", node.fact(1).shape[-1], "channels of its keys")
    else:
        heads, kv_heads = int(node.fact(0).shape[1]), int(node.fact(1).shape[1])
    if kv_heads < 1 or heads % kv_heads:
        raise node.error(
            f"{count_of(heads, 'head')} of queries cannot share {count_of(kv_heads, 'head')} of keys"
        )
    if node.has(VALID) and node.has(PAST_KEY):
        raise node.error("lengths of padded keys and past keys exclude each other")
    q = _heads(node, 0, heads, "q")
    keys = _present(node, _heads(node, 1, kv_heads, "k"), PAST_KEY, "present_key")
    values = _present(node, _heads(node, 2, kv_heads, "v"), PAST_VALUE, "present_value")
    k, v = (_repeat(node, x, heads, name) for x, name in ((keys, "k"), (values, "v")))
    scores = _scores(node, _to_f32(node, q, "q"), _to_f32(node, k, "k"))
    y = _mix(node, scores.weights, _to_f32(node, v, "v"), heads, flat)
    if len(node.outputs) < 4 or not node.outputs[3]:
        return [y, keys, values]
    return [y, keys, values, node.with_name(node.outputs[3]).cast(scores.choose(node), node.fact(0).dtype)]


def _to_f32(node: NodeContext, x: OutletId, name: str) -> OutletId:
    """Convert a tensor of half precision to f32; return others unchanged."""
    half = node.graph.fact(x).dtype.itemsize == 2
    return node.cast(x, F32, f"{name}_to_f32") if half else x


def _mix(node: NodeContext, weights: OutletId, v: OutletId, heads: int, flat: bool) -> OutletId:
    """Return weights times values, in the type and shape of the queries."""
    narrow = node.graph.fact(v).dtype != node.fact(0).dtype
    y = node.wire(MatMul(), [weights, v], "heads" if flat else "mixed" if narrow else "")
    if flat:
        y = node.wire(Transpose((0, 2, 1, 3)), [y], "frames")
        batch, frames, _, width = node.graph.fact(y).shape
        y = node.wire(Reshape((batch, frames, width * heads)), [y], "mixed" if narrow else "")
    return node.cast(y, node.fact(0).dtype)


def _heads(node: NodeContext, slot: int, heads: int, name: str) -> OutletId:
    """Return an input as [batch, heads, frames, channels]."""
    x, shape = node.input(slot), node.fact(slot).shape
    if len(shape) == 4:
        return x
    batch, frames, width = shape
    inner = exact_quotient([width], [TDim.of(heads)], f"{node.wire_name} (Attention)")
    split = node.wire(Reshape((batch, frames, TDim.of(heads), inner)), [x], f"{name}_split")
    return node.wire(Transpose((0, 2, 1, 3)), [split], f"{name}_heads")


def _present(node: NodeContext, x: OutletId, past: int, name: str) -> OutletId:
    """Return frames preceded by past frames."""
    if node.has(PAST_KEY) != node.has(PAST_VALUE):
        raise node.error("past keys and past values must be given together")
    return node.wire(Concat(2), [node.input(past), x], name) if node.has(past) else x


def _repeat(node: NodeContext, x: OutletId, heads: int, name: str) -> OutletId:
    """Repeat each head of keys or values as often as queries share it."""
    batch, kv_heads, frames, width = node.graph.fact(x).shape
    times = heads // int(kv_heads)
    if times == 1:
        return x
    one, many = TDim.of(1), TDim.of(times)
    with_axis = node.wire(Reshape((batch, kv_heads, one, frames, width)), [x], f"{name}_with_axis")
    repeated = node.wire(Expand((batch, kv_heads, many, frames, width)), [with_axis], f"{name}_repeated")
    return node.wire(Reshape((batch, TDim.of(heads), frames, width)), [repeated], f"{name}_shared")


def _scores(node: NodeContext, q: OutletId, k: OutletId) -> Scores:
    fact = node.graph.fact(q)
    scale = node.real("scale", 1 / math.sqrt(int(fact.shape[3])))
    k_transposed = node.wire(Transpose((0, 1, 3, 2)), [k], "k_transposed")
    product = node.wire(MatMul(), [q, k_transposed], "scores")
    product = node.apply("mul", product, scale, suffix="scaled")
    capped = _cap(node, product)
    masked, may_be_empty = _mask_scores(node, capped)
    weights = _softmax(node, masked)
    if may_be_empty:
        all_masked = node.apply("isnan", weights, suffix="all_masked")
        weights = node.apply("where", all_masked, 0, weights, suffix="cleaned")
    return Scores(product, capped, masked, weights)


def _cap(node: NodeContext, scores: OutletId) -> OutletId:
    """Return the scores as cap * tanh(scores / cap)."""
    cap = node.real("softcap", 0.0)
    if cap == 0:
        return scores
    small = node.apply("tanh", node.apply("div", scores, cap, suffix="share"), suffix="tanh")
    return node.apply("mul", small, cap, suffix="capped")


def _softmax(node: NodeContext, scores: OutletId) -> OutletId:
    """Return softmax over the keys, in another type if given."""
    dtype = node.graph.fact(scores).dtype
    code = node.integer("softmax_precision", 0)
    precision = onnx_dtype(code, f"{node.wire_name} (Attention)") if code else dtype
    same = precision == dtype
    weights = node.wire(
        Softmax(3), [node.cast(scores, precision, "precise")], "weights" if same else "precise_weights"
    )
    return node.cast(weights, dtype, "weights")


def _mask_scores(node: NodeContext, scores: OutletId) -> tuple[OutletId, bool]:
    """Set the scores to -inf for masked keys; also return whether a query may have no key at all."""
    fact = node.graph.fact(scores)
    if node.has(MASK):
        mask = _mask(node, fact)
        if node.fact(MASK).dtype == np.bool_:
            scores = node.apply("where", mask, scores, -math.inf, suffix="masked")
        else:
            scores = node.apply("add", scores, _to_f32(node, mask, "mask"), suffix="biased")
    left, right = (node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    limits = [("causal", "less_equal", 0)] if node.flag("is_causal") else []
    limits += [("right", "less_equal", right)] if right >= 0 else []
    limits += [("left", "greater_equal", -left)] if left >= 0 else []
    for name, function, distance in limits:
        rows, columns = _rows_and_columns(node, fact, name)
        if distance:
            rows = node.apply("add", rows, distance, suffix=f"{name}_at")
        visible = node.apply(function, columns, rows, suffix=f"{name}_visible")
        scores = node.apply("where", visible, scores, -math.inf, suffix=name)
    if node.has(VALID):
        columns = steps(node, fact.shape[-1], "key_indices")
        visible = node.apply("less", columns, _valid(node), suffix="valid_visible")
        scores = node.apply("where", visible, scores, -math.inf, suffix="valid")
    return scores, node.has(MASK) or node.has(VALID) or left >= 0


def _mask(node: NodeContext, scores: TypedFact) -> OutletId:
    """Return the mask; keys that it does not reach are not seen."""
    mask, fact = node.input(MASK), node.fact(MASK)
    width, columns = fact.shape[-1], scores.shape[-1]
    if not columns.prove_gt(width).yes:
        unify(width, columns, f"{node.wire_name} (Attention): frames of keys and of the mask")
        return mask
    pads = (*(NO_PAD,) * (fact.rank - 1), (ZERO, columns - width))
    return node.wire(Pad(pads, fill=0.0 if fact.dtype == np.bool_ else -math.inf), [mask], "padded_mask")


def _rows_and_columns(node: NodeContext, scores: TypedFact, name: str) -> tuple[OutletId, OutletId]:
    """Return the place of each query among the keys, as a column, and the places of the keys.

    A query comes after the keys of the past, or is one of the last keys that are not padding.
    """
    rows, columns = (
        steps(node, scores.shape[axis], f"{name}_{side}") for axis, side in ((-2, "rows"), (-1, "columns"))
    )
    rows = node.wire(AddAxis(1), [rows], f"{name}_row_column")
    keys_before = None
    if node.has(PAST_KEY):
        keys_before = node.dim_constant(node.fact(PAST_KEY).shape[2], f"{name}_past")
    elif node.has(VALID):
        queries = node.dim_constant(scores.shape[-2], f"{name}_queries")
        keys_before = node.apply("sub", _valid(node, name), queries, suffix=f"{name}_before")
    if keys_before is not None:
        rows = node.apply("add", rows, keys_before, suffix=f"{name}_positions")
    return rows, columns


def _valid(node: NodeContext, name: str = "keys") -> OutletId:
    """Return how many keys are not padding, [batch, 1, 1, 1] i64."""
    x = node.cast(node.input(VALID), I64, f"{name}_counts")
    one = TDim.of(1)
    return node.wire(Reshape((*node.fact(VALID).shape, one, one, one)), [x], f"{name}_valid")


@writes(BandedAttention)
def write_attention(w: NodeWriter, op: BandedAttention) -> str:
    """Write all frames with every pulse: the whole mask is a constant."""
    bias = op.full_bias(w.sizes()[-2]).astype(w.dtype(2))
    scores = w.emit("Add", [_band_scores(w, op), w.constant(bias, "bias")], "biased")
    return _weigh(w, op, scores, w.inputs[2], bool((bias == -np.inf).all(-1).any()))


@writes(BandedAttentionStream)
def write_attention_stream(w: NodeWriter, op: BandedAttentionStream) -> str:
    """Give frames of the window outside the stream no weight, whatever their values."""
    band, pulse, dtype = op.op, w.sizes()[-2], w.dtype(2)
    span = w.sizes(1)[-2]
    scores = w.emit("Add", [_band_scores(w, band), _band_bias(w, op, pulse, span)], "biased")
    low = -op.offset - band.back
    end = op.length if pulse > 1 or band.ahead > 0 else None
    v = w.inputs[2]
    if low < 0 or end is not None:
        inside = _stream_frames(w, pulse, low, span, 0, end)
        scores = w.emit("Where", [inside, scores, w.number(-np.inf, dtype, "minus_inf")], "masked")
        v = w.emit(
            "Where", [_stream_frames(w, pulse, low, span, 1, end), v, w.number(0, dtype, "zero")], "values"
        )
    current_bias = band.bias[..., band.back] if 0 <= band.back < band.width else np.array(-np.inf)
    return _weigh(w, band, scores, v, bool((current_bias == -np.inf).any()))


def _stream_frames(w: NodeWriter, pulse: int, low: int, span: int, trailing: int, end: TDim | None) -> str:
    """Return which frames of the window belong to the stream."""
    inside = w.clock.emit_positions_inside(w.clock.positions(pulse, low, span, trailing), low < 0, end)
    assert inside is not None
    return inside


def _band_scores(w: NodeWriter, op: BandedAttention) -> str:
    """Return the scores of each query and each key of the window."""
    q, k = w.inputs[:2]
    rank = len(w.sizes(1))
    keys = w.transpose(k, matrix_transpose(rank), "keys")
    product = w.emit("MatMul", [q, keys], "scores")
    if op.scale == 1:
        return product
    return w.emit("Mul", [product, w.number(op.scale, w.dtype(2), "scale")], "scaled")


def _band_bias(w: NodeWriter, op: BandedAttentionStream, pulse: int, span: int) -> str:
    """Return the table for a pulse's rows and columns; of several, the one for its place in the period."""
    period = op.op.period
    count = period // np.gcd(pulse, period)
    tables = [_unroll(op.op, pulse, span, (n * pulse - op.offset) % period) for n in range(int(count))]
    if all(np.array_equal(table, tables[0]) for table in tables[1:]):
        return w.constant(tables[0].astype(w.dtype(2)), "bias")
    every = w.constant(np.stack(tables).astype(w.dtype(2)), "biases")
    row = w.clock.add_op("Mod", [w.clock.pulses, w.clock.number(int(count))], f"pulses%{count}")
    return w.emit("Gather", [every, row], "bias", axis=0)


def _unroll(op: BandedAttention, pulse: int, span: int, first: int) -> Array:
    """Return ``[A..., pulse, span]``: row r has the table's row from column r on, -inf elsewhere."""
    rows, columns = np.arange(pulse)[:, None], np.arange(span)
    column = columns - rows
    inside = (column >= 0) & (column < op.width)
    rows_of_bias = op.bias[..., (first + rows) % op.period, np.where(inside, column, 0)]
    return np.where(inside, rows_of_bias, -np.inf)


def _weigh(w: NodeWriter, op: BandedAttention, scores: str, v: str, may_be_empty: bool) -> str:
    """Return means of v; ``may_be_empty``: a frame may have no keys."""
    weights = w.emit("Softmax", [scores], "weights", axis=-1)
    if not may_be_empty or np.isnan(op.empty):
        return w.emit("MatMul", [weights, v])
    dtype = w.dtype(2)
    best = w.reduce("ReduceMax", scores, (-1,), "best")
    all_masked = w.emit("Equal", [best, w.number(-np.inf, dtype, "minus_inf")], "all_masked")
    mean = w.emit("MatMul", [weights, v], "mean")
    return w.emit("Where", [all_masked, w.number(op.empty, dtype, "empty"), mean])
