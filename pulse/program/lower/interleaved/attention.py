"""Attention for sixteen streams with interleaved memories."""

from collections.abc import Iterator

import numpy as np

from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.attention_whole import WholeAttentionRow
from pulse.program.kernels.matmul.batches_interleaved import InterleavedMatmulRow
from pulse.program.kernels.norm_interleaved import InterleavedSoftmaxRow
from pulse.program.lower.interleaved.lowering import InterleavedLowering, interleaves


@interleaves(WholeAttentionRow)
def interleave_attention(lowering: InterleavedLowering, row: WholeAttentionRow) -> Iterator[Instruction]:
    """Emit the product of queries and keys, the softmax, and the product with the values; the scores are in scratch."""
    scores, rows = lowering.data(row.scratch), row.B * row.M
    starts = lowering.add_table(np.arange(row.B, dtype=np.int64) * (row.M * row.N))
    row_offsets = lowering.add_table(np.arange(rows, dtype=np.int64) * row.N)
    yield InterleavedMatmulRow(
        a=lowering.data(row.q),
        b=lowering.data(row.k),
        y=scores,
        B=row.B,
        batch_a=lowering.share(row.batch_q),
        batch_b=lowering.share(row.batch_k),
        batch_y=starts,
        M=row.M,
        K=row.K,
        N=row.N,
        am=1,
        ak=row.qk,
        bk=row.kk,
        bn=row.kn,
        ym=row.N,
        yn=1,
        scale=row.scale,
    )
    yield InterleavedSoftmaxRow(
        x=scores, y=scores, M=rows, rows_x=row_offsets, rows_y=row_offsets, R=row.N, log=False
    )
    yield InterleavedMatmulRow(
        a=scores,
        b=lowering.data(row.v),
        y=lowering.data(row.y),
        B=row.B,
        batch_a=starts,
        batch_b=lowering.share(row.batch_v),
        batch_y=lowering.share(row.batch_y),
        M=row.M,
        K=row.N,
        N=row.D,
        am=row.N,
        ak=1,
        bk=row.vn,
        bn=1,
        ym=row.ym,
        yn=1,
        scale=1.0,
    )
