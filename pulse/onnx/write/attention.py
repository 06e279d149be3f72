"""Banded attention: products over the window, with a mask made from the table and the position."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.attention import BandedAttention, BandedAttentionStream


@writes(BandedAttention)
def write_attention(w: NodeWriter, op: BandedAttention) -> str:
    """All frames with every pulse: the whole mask is a constant."""
    bias = op.full_bias(w.sizes()[-2]).astype(w.dtype(2))
    scores = w.emit("Add", [_scores(w, op), w.constant(bias, "bias")], "biased")
    return _weighted(w, op, scores, w.inputs[2], bool((bias == -np.inf).all(-1).any()))


@writes(BandedAttentionStream)
def write_attention_stream(w: NodeWriter, op: BandedAttentionStream) -> str:
    """Frames of the window that are outside of the stream have no weight, whatever they hold."""
    band, pulse, dtype = op.op, w.sizes()[-2], w.dtype(2)
    scores = w.emit("Add", [_scores(w, band), _bias(w, op, pulse)], "biased")
    span = pulse + band.width - 1
    low = -op.offset - band.back
    end = op.length if pulse > 1 or band.ahead > 0 else None
    v = w.inputs[2]
    if low < 0 or end is not None:
        inside = _inside(w, pulse, low, span, 0, end)
        scores = w.emit("Where", [inside, scores, w.number(-np.inf, dtype, "never")], "seen")
        v = w.emit("Where", [_inside(w, pulse, low, span, 1, end), v, w.number(0, dtype, "zero")], "values")
    own = band.bias[..., band.back] if 0 <= band.back < band.width else np.array(-np.inf)
    return _weighted(w, band, scores, v, bool((own == -np.inf).any()))


def _inside(w: NodeWriter, pulse: int, low: int, span: int, trailing: int, end: TDim | None) -> str:
    """Which frames of the window belong to the stream."""
    inside = w.clock.inside(w.clock.positions(pulse, low, span, trailing), low < 0, end)
    assert inside is not None
    return inside


def _scores(w: NodeWriter, op: BandedAttention) -> str:
    """How well each query meets each key of the window."""
    q, k = w.inputs[:2]
    rank = len(w.sizes(1))
    turned = w.transpose(k, (*range(rank - 2), rank - 1, rank - 2), "keys")
    product = w.emit("MatMul", [q, turned], "scores")
    if op.scale == 1:
        return product
    return w.emit("Mul", [product, w.number(op.scale, w.dtype(2), "scale")], "scaled")


def _bias(w: NodeWriter, op: BandedAttentionStream, pulse: int) -> str:
    """The table for the rows and columns of a pulse; of several, that of this pulse's place in the period."""
    period = op.op.period
    count = period // np.gcd(pulse, period)
    tables = [_unrolled(op.op, pulse, (n * pulse - op.offset) % period) for n in range(int(count))]
    if all(np.array_equal(table, tables[0]) for table in tables[1:]):
        return w.constant(tables[0].astype(w.dtype(2)), "bias")
    every = w.constant(np.stack(tables).astype(w.dtype(2)), "biases")
    place = w.clock.op("Mod", [w.clock.pulses, w.clock.number(int(count))], f"pulses%{count}")
    return w.emit("Gather", [every, place], "bias", axis=0)


def _unrolled(op: BandedAttention, pulse: int, first: int) -> Array:
    """``[A..., pulse, pulse + width - 1]``: row r has the table's row from column r on, -inf elsewhere."""
    rows, columns = np.arange(pulse)[:, None], np.arange(pulse + op.width - 1)
    place = columns - rows
    inside = (place >= 0) & (place < op.width)
    found = op.bias[..., (first + rows) % op.period, np.where(inside, place, 0)]
    return np.where(inside, found, -np.inf)


def _weighted(w: NodeWriter, op: BandedAttention, scores: str, v: str, lonely: bool) -> str:
    """Means of v; ``lonely`` says that a frame may see nothing."""
    weights = w.emit("Softmax", [scores], "weights", axis=-1)
    if not lonely or np.isnan(op.empty):
        return w.emit("MatMul", [weights, v])
    dtype = w.dtype(2)
    best = w.reduce("ReduceMax", scores, (-1,), "best")
    nothing = w.emit("Equal", [best, w.number(-np.inf, dtype, "never")], "nothing")
    mean = w.emit("MatMul", [weights, v], "mean")
    return w.emit("Where", [nothing, w.number(op.empty, dtype, "empty"), mean])
