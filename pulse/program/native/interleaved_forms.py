"""What each instruction becomes for sixteen streams with interleaved memories."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.jit.instruction import Instruction, number_fields
from pulse.jit.simd import LANES
from pulse.program.kernels.conv_depthwise import Depthwise
from pulse.program.kernels.conv_interleaved import InterleavedDepthwise
from pulse.program.kernels.copy import Copy, Fill, Move
from pulse.program.kernels.dtypes import F32
from pulse.program.kernels.elementwise import CHAIN_LOOPS, Chain32, ChainInput, ChainOutput
from pulse.program.kernels.matmul_interleaved import (
    COLUMNS,
    InterleavedProduct,
    few_weights,
    interleaved_weights,
)
from pulse.program.kernels.matmul_product import Product
from pulse.program.kernels.matmul_product_few import ProductFew
from pulse.program.kernels.norm import LayerNormRows
from pulse.program.kernels.norm_interleaved import InterleavedLayerNorm
from pulse.program.kernels.recurrent import RecurrentFrames
from pulse.program.kernels.recurrent_gru import Gru
from pulse.program.kernels.recurrent_gru_small import GruEights, GruFours, SmallGrus
from pulse.program.kernels.recurrent_interleaved import InterleavedGru, gates_by_unit, small_gates_by_unit
from pulse.program.kernels.reduce import PoolRow
from pulse.program.kernels.time import FillEndsRow
from pulse.program.native.interleaving import WORD, Interleaving, NotInterleavedError, form_of, further_on
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Region, Value


@form_of(Product)
def _product(cx: Interleaving, row: Product) -> Iterator[Instruction]:
    if row.form != "f32":
        raise NotInterleavedError("weights that are not f32")
    packed = cx.constant(row.W).ravel()
    yield _sums(cx, row, interleaved_weights(packed, row.T * row.K, row.N))


@form_of(ProductFew)
def _product_few(cx: Interleaving, row: ProductFew) -> Iterator[Instruction]:
    if row.form != "f32":
        raise NotInterleavedError("weights that are not f32")
    packed = cx.constant(row.W).ravel()
    yield _sums(cx, row, few_weights(packed, row.width, row.N))


def _sums(cx: Interleaving, row: Product | ProductFew, weights: Array) -> Instruction:
    bias = cx.constant(row.bias).ravel()[: row.N]
    padded = np.zeros(-(-row.N // COLUMNS) * COLUMNS, np.float32)
    padded[: row.N] = bias
    return InterleavedProduct(
        x=cx.data(row.x),
        W=cx.table(weights),
        bias=cx.table(padded),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.share(row.rows_x),
        rows_y=cx.share(row.rows_y),
        T=row.T,
        taps=cx.share(row.taps),
        K=row.K,
        N=row.N,
        accumulate=row.accumulate,
        finish=cx.finish(row.finish),
    )


@form_of(Depthwise)
def _depthwise(cx: Interleaving, row: Depthwise) -> Iterator[Instruction]:
    yield InterleavedDepthwise(
        x=cx.data(row.x),
        W=cx.share(row.W),
        bias=cx.share(row.bias),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.share(row.rows_x),
        rows_y=cx.share(row.rows_y),
        T=row.T,
        taps=cx.share(row.taps),
        C=row.C,
        finish=cx.finish(row.finish),
    )


@form_of(LayerNormRows)
def _layernorm(cx: Interleaving, row: LayerNormRows) -> Iterator[Instruction]:
    yield InterleavedLayerNorm(
        x=cx.data(row.x),
        scale=cx.share(row.scale),
        bias=cx.share(row.bias),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.share(row.rows_x),
        rows_y=cx.share(row.rows_y),
        R=row.R,
        eps=row.eps,
    )


@form_of(PoolRow)
def _pool(cx: Interleaving, row: PoolRow) -> Iterator[Instruction]:
    yield PoolRow(
        x=cx.data(row.x),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.table(cx.constant(row.rows_x) * LANES),
        rows_y=cx.table(cx.constant(row.rows_y) * LANES),
        T=row.T,
        taps=cx.table(cx.constant(row.taps) * LANES),
        C=row.C * LANES,
        kind=row.kind,
        scale=row.scale,
    )


@form_of(Copy)
def _copy(cx: Interleaving, row: Copy) -> Iterator[Instruction]:
    if row.size % WORD:
        raise NotInterleavedError("elements of less than a word")
    words = row.size // WORD
    sizes = (row.n0, row.n1, row.n2, row.n3, row.n4, row.n5, words)
    a = (row.a0, row.a1, row.a2, row.a3, row.a4, row.a5)
    b = (row.b0, row.b1, row.b2, row.b3, row.b4, row.b5)
    strides = tuple((*(step * words for step in each), 1) for each in (a, b))
    return cx.copy(cx.data(row.src), cx.data(row.dst), Loops(sizes, strides))


@form_of(Fill)
def _fill(cx: Interleaving, row: Fill) -> Iterator[Instruction]:
    if row.size != WORD and (row.bits or row.size % WORD):
        raise NotInterleavedError("elements of another size than a word")
    count = row.count * row.size // WORD * LANES
    yield Fill(dst=cx.data(row.dst), size=WORD, count=count, bits=row.bits)


@form_of(Move)
def _move(cx: Interleaving, row: Move) -> Iterator[Instruction]:
    if row.bytes % WORD:
        raise NotInterleavedError("elements of less than a word")
    yield Move(dst=cx.data(row.dst), src=cx.data(row.src), bytes=row.bytes * LANES)


@form_of(Chain32)
def _chain(cx: Interleaving, row: Chain32) -> Iterator[Instruction]:
    parts: list[ChainInput] = [*row.inputs, row.output]
    if any(part.dtype != F32 for part in parts):
        raise NotInterleavedError("functions of other types than f32")
    tensors: list[Value] = []
    strides: list[tuple[int, ...]] = []
    for part in parts:
        tensor: Any = part.tensor
        steps = (part.step0, part.step1, part.step2, part.step3)
        if tensor.buffer.region is Region.WEIGHTS:
            tensors.append(cx.table(cx.whole(tensor)))
            strides.append((*steps, 0))
        else:
            tensors.append(cx.data(tensor))
            strides.append((*(step * LANES for step in steps), 1))
    loops = Loops((row.s0, row.s1, row.s2, row.s3, LANES), tuple(strides))
    for offsets, inner in loops.merge().inside(CHAIN_LOOPS):
        moved: list[dict[str, Any]] = [
            {"tensor": further_on(tensor, offset), "dtype": F32, **number_fields("step", steps)}
            for tensor, offset, steps in zip(tensors, offsets, inner.strides)
        ]
        yield Chain32(
            **number_fields("s", inner.sizes),
            input_count=row.input_count,
            op_count=row.op_count,
            inputs=[ChainInput(**fields) for fields in moved[:-1]],
            output=ChainOutput(**moved[-1]),
            ops=row.ops,
        )


@form_of(FillEndsRow)
def _fill_ends(cx: Interleaving, row: FillEndsRow) -> Iterable[Instruction]:
    if not cx.is_clock(row.clock):
        raise NotInterleavedError("ends of every pulse")
    cx.require_endless(row.end)
    cx.require_past(row.shift + row.keep, row.P)
    overlap = row.overlap - row.keep
    ahead = row.offset + overlap - row.shift
    if row.in_place and ahead == 0:
        return ()
    if not 0 <= ahead <= overlap or row.size % WORD:
        raise NotInterleavedError("frames that are not there yet")
    words = row.size // WORD
    sizes = (row.P + row.keep, row.run * words)
    strides = ((row.step_x * words, 1), (row.step_y * words, 1))
    source = further_on(cx.data(row.x), ahead * row.step_x * words * LANES)
    return cx.copy(source, cx.data(row.y), Loops(sizes, strides))


def _from_the_state(cx: Interleaving, row: RecurrentFrames) -> Iterator[Instruction]:
    """Take note of the frames in front of the stream; load the state of a sequence of its own."""
    if cx.is_clock(row.clock):
        cx.require_endless(row.end)
        cx.require_past(row.offset, row.T)
        return
    if row.offset or int(cx.constant(row.end).ravel()[0]) < row.T:
        raise NotInterleavedError("a sequence that is not whole")
    if row.reload:
        loops = Loops((row.B, row.H), ((row.step_h0, 1), (row.H, 1)))
        yield from cx.copy(cx.data(row.h0), cx.data(row.h), loops)


def _recurrence(
    cx: Interleaving, row: Gru | SmallGrus, weights: Array, bias: Array, step_x: int
) -> Iterator[Instruction]:
    yield from _from_the_state(cx, row)
    count, units = weights.shape[:2]
    yield InterleavedGru(
        y=cx.data(row.y),
        h=cx.data(row.h),
        x=cx.data(row.x),
        W=cx.table(weights),
        bias=cx.table(np.ascontiguousarray(bias.ravel()[: count * units])),
        count=count,
        step_x=step_x,
        units=units,
        T=row.T,
        B=row.B,
        H=row.H,
        frame=row.frame,
        step=row.step,
        clip=row.clip,
        f=row.f,
        g=row.g,
    )


@form_of(Gru)
def _gru(cx: Interleaving, row: Gru) -> Iterator[Instruction]:
    if row.form != "f32" or row.reverse:
        raise NotInterleavedError("a layer backwards in time, or weights that are not f32")
    weights = gates_by_unit(cx.constant(row.W).ravel(), row.H)
    return _recurrence(cx, row, weights, cx.constant(row.bias), 0)


@form_of(GruFours, GruEights)
def _small_grus(cx: Interleaving, row: SmallGrus) -> Iterator[Instruction]:
    width = 4 if isinstance(row, GruFours) else 8
    weights = small_gates_by_unit(cx.constant(row.W).ravel(), width)[: row.count]
    return _recurrence(cx, row, np.ascontiguousarray(weights), cx.constant(row.bias), row.step_x)
