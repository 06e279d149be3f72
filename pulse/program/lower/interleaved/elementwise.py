"""Elementwise chains for sixteen streams with interleaved memories."""

from collections.abc import Iterator
from typing import Any

from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction, number_fields
from pulse.program.kernels.dtypes import F32_CODE
from pulse.program.kernels.elementwise import CHAIN_LOOPS, ChainInput, ChainOutput, ChainRow
from pulse.program.lower.interleaved.lowering import (
    InterleavedLowering,
    NotInterleavedError,
    advance,
    interleaves,
)
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Region, TensorView


@interleaves(ChainRow)
def interleave_chain(lowering: InterleavedLowering, row: ChainRow) -> Iterator[Instruction]:
    """Add a loop over the streams."""
    parts: list[ChainInput] = [*row.inputs, row.output]
    if any(part.dtype != F32_CODE for part in parts):
        raise NotInterleavedError("functions of other types than f32")
    tensors: list[TensorView] = []
    strides: list[tuple[int, ...]] = []
    for part in parts:
        tensor: Any = part.tensor
        steps = (part.step0, part.step1, part.step2, part.step3)
        if tensor.buffer.region is Region.WEIGHTS:
            tensors.append(lowering.add_table(lowering.read_to_end(tensor)))
            strides.append((*steps, 0))
        else:
            tensors.append(lowering.data(tensor))
            strides.append((*(step * LANES for step in steps), 1))
    loops = Loops((row.s0, row.s1, row.s2, row.s3, LANES), tuple(strides))
    for offsets, inner in loops.merge().move_longest_inside().inner_loops(CHAIN_LOOPS):
        operand_fields: list[dict[str, Any]] = [
            {"tensor": advance(tensor, offset), "dtype": F32_CODE, **number_fields("step", steps)}
            for tensor, offset, steps in zip(tensors, offsets, inner.strides)
        ]
        yield ChainRow(
            **number_fields("s", inner.sizes),
            input_count=row.input_count,
            op_count=row.op_count,
            inputs=[ChainInput(**fields) for fields in operand_fields[:-1]],
            output=ChainOutput(**operand_fields[-1]),
            ops=row.ops,
        )
