"""The work of each op: one table, by the class of the op.

A multiply-add is one term of a sum of products. An elementwise operation is one function of one element, such as an
addition or an exponential; constants below that are counted by hand say which. Moving data costs neither.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from pulse.dim import ZERO, TDim
from pulse.facts import Shape, TypedFact
from pulse.graph import Graph
from pulse.ops.attention import BandedAttention, BandedAttentionStream
from pulse.ops.concat import Concat
from pulse.ops.control import Loop
from pulse.ops.conv import Conv, ConvTranspose
from pulse.ops.cumulative import CumSum, CumSumStream
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_bits import BitCast
from pulse.ops.elementwise_within import Within
from pulse.ops.fault import CountFaults
from pulse.ops.gather import Gather
from pulse.ops.gather_elements import GatherBatches, GatherElements
from pulse.ops.generic import Generic
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.op import Op, broadcast_shapes
from pulse.ops.pad import Pad
from pulse.ops.pool import MaxPlace, Pool
from pulse.ops.quantize import CodeTable
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.ops.recurrent_cells import GATES, CellKind
from pulse.ops.reduce import ArgReduce, Reduce
from pulse.ops.resize import Interpolate, Polyphase
from pulse.ops.scan import Scan, ScanStream
from pulse.ops.scatter import ScatterElements, ScatterND
from pulse.ops.search import TopK
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose, volume
from pulse.ops.slice import Decimate, Slice
from pulse.ops.slice_frames import Frames
from pulse.ops.source import Const, Source
from pulse.ops.spectral import Dft
from pulse.ops.stateful import Carried, OnPulses
from pulse.ops.time import Delay, LastFrames
from pulse.ops.time_ends import FillEnds
from pulse.ops.time_length import StreamEnd
from pulse.ops.time_position import Positions, Range, TableRows
from pulse.record import record

F = TypeVar("F", bound=TypedFact)
Facts: TypeAlias = Sequence[TypedFact]

SOFTMAX_STEPS = 5
"""Of each element: maximum, difference, exponential, sum, quotient."""

NORM_STEPS = 5
"""Of each element: sum, difference, square, sum of squares, quotient; scale and bias are one each."""

CELL_STEPS: dict[CellKind, int] = {"rnn": 3, "gru": 14, "lstm": 17}
"""Of each element of the state: two additions and an activation for each gate; of a gru one product with the reset
gate, then 1 - z, two products and a sum; of an lstm two products, a sum, tanh and a product. Peepholes come on top."""


@record
class Work:
    """Multiply-adds and elementwise operations; functions of the symbols."""

    macs: TDim = ZERO
    elementwise: TDim = ZERO

    def __add__(self, other: "Work") -> "Work":
        return Work(self.macs + other.macs, self.elementwise + other.elementwise)

    def times(self, count: TDim) -> "Work":
        """The same, this many times over."""
        return Work(self.macs * count, self.elementwise * count)


def _conv(op: Conv, inputs: Facts, outputs: Facts) -> Work:
    bias = _size(outputs[0]) if len(inputs) > 2 else ZERO
    return Work(_size(outputs[0]) * volume(inputs[1].shape[1:]), bias)


def _conv_transpose(op: ConvTranspose, inputs: Facts, outputs: Facts) -> Work:
    bias = _size(outputs[0]) if len(inputs) > 2 else ZERO
    return Work(_size(inputs[0]) * volume(inputs[1].shape[1:]), bias)


def _matmul(op: MatMul, inputs: Facts, outputs: Facts) -> Work:
    return Work(_size(outputs[0]) * inputs[0].shape[-1])


def _dft(op: Dft, inputs: Facts, outputs: Facts) -> Work:
    """The work of the product with its matrix, which is how constant lengths run."""
    terms = inputs[0].shape[op.axis] * inputs[0].shape[-1]
    return Work(_size(outputs[0]) * terms)


def _recurrent(op: Recurrent, inputs: Facts, outputs: Facts) -> Work:
    frames, batch, features = inputs[0].shape
    rows = GATES[op.cell.kind] * op.hidden
    steps = frames * batch * op.hidden * CELL_STEPS[op.cell.kind]
    return Work(frames * batch * rows * (features + op.hidden), steps)


def _attention(op: BandedAttention, inputs: Facts, outputs: Facts) -> Work:
    """The work of the whole band, also where the stream's ends cut it short."""
    q, _, v = inputs
    batch: Shape = broadcast_shapes([fact.shape[:-2] for fact in inputs], "batch axes")
    pairs = volume(batch) * q.shape[-2] * op.width
    return Work(pairs * (q.shape[-1] + v.shape[-1]), pairs * (SOFTMAX_STEPS + 2))


def _elementwise(op: Elementwise, inputs: Facts, outputs: Facts) -> Work:
    several = op.kind in ("min", "max", "sum", "mean")
    return _each(outputs, max(1, len(inputs) - 1) if several else 1)


def _pool(op: Pool, inputs: Facts, outputs: Facts) -> Work:
    return _each(outputs, math.prod(op.kernel))


def _layer_norm(op: LayerNorm, inputs: Facts, outputs: Facts) -> Work:
    return _each(inputs[:1], NORM_STEPS + len(inputs) - 1)


def _interpolate(op: Interpolate, inputs: Facts, outputs: Facts) -> Work:
    if op.sampling.rounding is not None:
        return Work()
    return Work(_size(outputs[0]) * (2 if op.sampling.cubic is None else 4))


def _polyphase(op: Polyphase, inputs: Facts, outputs: Facts) -> Work:
    taps = sum(len(phase) for phase in op.taps if len(phase) > 1)
    return Work(_size(outputs[0]) * taps // len(op.taps))


def _scan(op: Scan, inputs: Facts, outputs: Facts) -> Work:
    return graph_work(op.body.graph).times(inputs[0].shape[op.scanned[0].axis])


def _loop(op: Loop, inputs: Facts, outputs: Facts) -> Work:
    """The work of all iterations; of one if their number is not known."""
    return graph_work(op.body.graph).times(op.iterations or TDim.of(1))


def _inner(op: Any, inputs: Facts, outputs: Facts) -> Work:
    return op_work(op.op, inputs, outputs)


def _size(fact: TypedFact) -> TDim:
    return volume(fact.shape)


def _each(facts: Facts, steps: int = 1) -> Work:
    return Work(elementwise=_size(facts[0]) * steps)


def _reads(steps: int = 1) -> Callable[[Any, Facts, Facts], Work]:
    return lambda op, inputs, outputs: _each(inputs, steps)


def _makes(op: Op, inputs: Facts, outputs: Facts) -> Work:
    return _each(outputs)


def _moves(op: Op, inputs: Facts, outputs: Facts) -> Work:
    return Work()


WORK: dict[type[Op], Callable[[Any, Facts, Facts], Work]] = {
    Conv: _conv,
    ConvTranspose: _conv_transpose,
    MatMul: _matmul,
    Dft: _dft,
    Recurrent: _recurrent,
    RecurrentStream: _inner,
    BandedAttention: _attention,
    BandedAttentionStream: _inner,
    Scan: _scan,
    ScanStream: _inner,
    Loop: _loop,
    OnPulses: _inner,
    Carried: _inner,
    Elementwise: _elementwise,
    Cast: _makes,
    Pool: _pool,
    MaxPlace: lambda op, inputs, outputs: _pool(op.pool, inputs, outputs),
    Interpolate: _interpolate,
    Polyphase: _polyphase,
    Softmax: _reads(SOFTMAX_STEPS),
    LayerNorm: _layer_norm,
    Reduce: _reads(),
    ArgReduce: _reads(),
    CumSum: _reads(),
    CumSumStream: _reads(),
    TopK: _reads(),
    Range: _makes,
    Positions: _makes,
    **dict.fromkeys(
        (
            AddAxis,
            BitCast,
            CodeTable,
            Concat,
            Const,
            Decimate,
            Delay,
            Expand,
            FillEnds,
            Frames,
            Gather,
            GatherBatches,
            GatherElements,
            CountFaults,
            LastFrames,
            Pad,
            RemoveAxis,
            Reshape,
            ScatterElements,
            ScatterND,
            Slice,
            Source,
            StreamEnd,
            TableRows,
            Tile,
            Transpose,
            Within,
        ),
        _moves,
    ),
}
"""How much an op of each class computes, from the op and the facts of its inputs and outputs."""

UNCOUNTED: tuple[type[Op], ...] = (Generic,)
"""Ops whose work is not known, or depends on data; so are those that users register."""


def op_work(op: Op, inputs: Facts, outputs: Facts) -> Work:
    """The work of one op; none if nothing is known of it."""
    return WORK.get(type(op), _moves)(op, inputs, outputs)


def graph_work(graph: Graph[F, Op]) -> Work:
    """The work of all nodes that the outputs need."""
    total = Work()
    for number in graph.order():
        node = graph.nodes[number]
        outputs = [outlet.fact for outlet in node.outputs]
        total += op_work(node.op, graph.input_facts(node), outputs)
    return total
