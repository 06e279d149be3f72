"""Banded attention: one instruction that reads keys and values directly from the delay memory."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.attention import BandedAttentionStream
from pulse.program.kernels.attention import BandAttention
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value


@lowers(BandedAttentionStream)
def lower_banded_attention(cx: Lowering, node: PulsedNode, op: BandedAttentionStream) -> list[Value]:
    """Lower to one instruction; the channels of q, k, v and y are contiguous."""
    outlet = OutletId(node.id)
    reads = [cx.floats(cx.value(source), "attention") for source in node.inputs]
    q, k, v = (cx.innermost(x, len(x.shape) - 1) for x in reads)
    band = op.op
    y = cx.new(outlet)
    bias = cx.constant(np.ascontiguousarray(band.bias, np.float32))
    batch = y.shape[:-2]
    at_q, at_k, at_v, at_bias, at_y = (cx.table(batch_offsets(x, batch)) for x in (q, k, v, bias, y))
    cx.emit(
        BandAttention(
            q=q,
            k=k,
            v=v,
            bias=bias,
            y=y,
            scratch=cx.temporary((band.width,), q.dtype),
            clock=cx.clock,
            end=cx.end(op.length),
            M=int(np.prod(batch, dtype=np.int64)),
            at_q=at_q,
            at_k=at_k,
            at_v=at_v,
            at_bias=at_bias,
            at_y=at_y,
            P=q.shape[-2],
            step_q=q.strides[-2],
            step_k=k.strides[-2],
            step_v=v.strides[-2],
            step_y=y.strides[-2],
            depth=q.shape[-1],
            width=v.shape[-1],
            W=band.width,
            back=band.back,
            C=band.period,
            offset=op.offset,
            scale=band.scale,
            empty=band.empty,
        )
    )
    return [y]


def batch_offsets(value: Value, batch: Sequence[int]) -> Array:
    """Return the offset of each matrix of the last two axes, with the batch axes broadcast."""
    lead = list(range(len(value.shape) - 2))
    offsets = value.offsets(lead).reshape([value.shape[axis] for axis in lead])
    return np.ascontiguousarray(np.broadcast_to(offsets, batch)).ravel()
