"""Banded attention: one instruction that reads keys and values directly from the delay memory."""

import math
from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.jit.language.simd import LANES
from pulse.ops.attention import BandedAttentionStream
from pulse.program.kernels.attention import GROUP_HEADS, BandAttentionRow, scratch_size
from pulse.program.lower.matmul_windows import batch_offsets
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(BandedAttentionStream)
def lower_banded_attention(
    lowering: Lowering, node: PulsedNode, op: BandedAttentionStream
) -> list[TensorView]:
    """Emit one instruction; the channels of q, k, v and y are contiguous."""
    outlet = OutletId(node.id)
    reads = [lowering.require_f32(lowering.value(source), "attention") for source in node.inputs]
    q, k, v = (lowering.make_innermost(x, len(x.shape) - 1) for x in reads)
    band = op.op
    y = lowering.allocate_wire(outlet)
    batch = y.shape[:-2]
    heads = heads_per_group((q, k, v, y), batch)
    groups = math.prod(batch) // heads
    at_q, at_k, at_v, at_y = (lowering.add_table(batch_offsets(x, batch)[::heads]) for x in (q, k, v, y))
    biases, at_bias = group_biases(band.bias, batch, heads)
    lowering.emit(
        BandAttentionRow(
            q=q,
            k=k,
            v=v,
            bias=lowering.add_constant(biases),
            y=y,
            scratch=lowering.allocate_temporary((scratch_size(groups, heads, band.width),), q.dtype),
            clock=lowering.clock,
            end=lowering.length_register(op.length),
            M=groups,
            at_q=at_q,
            at_k=at_k,
            at_v=at_v,
            at_bias=lowering.add_table(at_bias),
            at_y=at_y,
            P=q.shape[-2],
            step_q=q.strides[-2],
            step_k=k.strides[-2],
            step_v=v.strides[-2],
            step_y=y.strides[-2],
            heads=heads,
            depth=q.shape[-1],
            width=v.shape[-1],
            W=band.width,
            back=band.back,
            span=k.shape[-2],
            C=band.period,
            offset=op.offset,
            scale=band.scale,
            empty=band.empty,
        )
    )
    return [y]


def heads_per_group(values: Sequence[TensorView], batch: Sequence[int]) -> int:
    """Return how many matrices of neighbouring batches fill a vector, if all values have them side by side; else 1."""
    channels = values[0].shape[-1]
    if channels < 1 or LANES % channels or any(value.shape[-1] != channels for value in values):
        return 1
    heads = LANES // channels
    if heads not in GROUP_HEADS or math.prod(batch) % heads:
        return 1
    groups = (batch_offsets(value, batch).reshape(-1, heads) for value in values)
    return heads if all((np.diff(offsets) == channels).all() for offsets in groups) else 1


def group_biases(bias: Array, batch: Sequence[int], heads: int) -> tuple[Array, Array]:
    """Return the different tables of biases, [tables, C, W, heads], and the offset of each group's."""
    tables, (period, width) = bias.shape[:-2], bias.shape[-2:]
    numbers = np.arange(math.prod(tables)).reshape(tables)
    of_groups = np.broadcast_to(numbers, batch).reshape(-1, heads)
    different, table = np.unique(of_groups, axis=0, return_inverse=True)
    stacked = np.moveaxis(bias.reshape(-1, period, width)[different], 1, -1)
    return np.ascontiguousarray(stacked, np.float32), table.ravel() * (period * width * heads)
