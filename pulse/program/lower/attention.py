"""Banded attention: one instruction that reads keys and values where the delay memory has them."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.attention import BandedAttentionStream
from pulse.program.kernels.pointer import real_bits
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value


@lowers(BandedAttentionStream)
def lower_banded_attention(cx: Lowering, node: PulsedNode, op: BandedAttentionStream) -> list[Value]:
    """Rows of q, k, v and y with their channels contiguous."""
    outlet = OutletId(node.id)
    reads = [cx.floats(cx.value(read), "attention") for read in node.inputs]
    q, k, v = (cx.innermost(x, len(x.shape) - 1) for x in reads)
    band = op.op
    y = cx.new(outlet)
    bias = cx.constant(np.ascontiguousarray(band.bias, np.float32))
    batch = y.shape[:-2]
    batches = int(np.prod(batch, dtype=np.int64))
    tables = [cx.table(batch_offsets(x, batch)) for x in (q, k, v, bias, y)]
    cx.emit(
        "band_attention",
        q,
        k,
        v,
        bias,
        y,
        cx.temporary((band.width,), q.dtype),
        cx.clock,
        cx.end(op.length),
        batches,
        *tables,
        q.shape[-2],
        *(x.strides[-2] for x in (q, k, v, y)),
        q.shape[-1],
        v.shape[-1],
        band.width,
        band.back,
        band.period,
        op.offset,
        real_bits(band.scale),
        real_bits(band.empty),
    )
    return [y]


def batch_offsets(value: Value, batch: Sequence[int]) -> Array:
    """Where each matrix of the last two axes begins, the batch axes broadcast."""
    lead = list(range(len(value.shape) - 2))
    offsets = value.offsets(lead).reshape([value.shape[axis] for axis in lead])
    return np.ascontiguousarray(np.broadcast_to(offsets, batch)).ravel()
