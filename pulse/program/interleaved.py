"""Sixteen streams of a program with interleaved memories: instructions of which a vector is one element of all.

A word of four bytes of a stream's state or arena becomes sixteen, one of each stream. So every instruction runs once for
all of them with full vectors, however small its tensors are, and none waits for its own last result.

The instructions are those of the middle of a stream: every frame of a pulse is a frame of all streams, and states are
not loaded. A stream that is younger than ``settled`` pulses, or has ended, runs by itself.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from pulse.facts import Array
from pulse.jit.instruction import Instruction, numbered
from pulse.jit.simd import LANES
from pulse.program.kernels.conv_depthwise import Depthwise
from pulse.program.kernels.conv_interleaved import InterleavedDepthwise
from pulse.program.kernels.copy import Copy, Fill, Move
from pulse.program.kernels.dtypes import F32
from pulse.program.kernels.elementwise import Chain32, ChainInput, ChainOutput
from pulse.program.kernels.matmul_finish import BY_COLUMN, STEPS, Finish, Step
from pulse.program.kernels.matmul_interleaved import COLUMNS, InterleavedProduct, interleaved_weights
from pulse.program.kernels.matmul_product import Product
from pulse.program.kernels.norm import LayerNormRows
from pulse.program.kernels.norm_interleaved import InterleavedLayerNorm
from pulse.program.kernels.recurrent import Frames
from pulse.program.kernels.recurrent_gru import Gru
from pulse.program.kernels.recurrent_gru_small import GruEights, GruFours, SmallGrus
from pulse.program.kernels.recurrent_interleaved import InterleavedGru, gates_by_unit, small_gates_by_unit
from pulse.program.kernels.reduce import Pool
from pulse.program.kernels.time import FillEnds, Tick
from pulse.program.loops import Loops
from pulse.program.lowering import Emitted
from pulse.program.memory import Buffer, Image, Region, Value
from pulse.record import record

WORD = 4
"""Bytes of what is interleaved."""
ENDLESS = 1 << 40
"""A stream whose length is not known has at least so many frames."""
CHAIN_LOOPS, COPY_LOOPS = 4, 6


class NotInterleavedError(Exception):
    """An instruction has no form for interleaved memories."""


@record
class Interleaved:
    """The instructions, their weights, and where the clock of a stream is.

    settled   from how many pulses of a stream on they hold
    clock_at  the byte of a stream's state that counts its pulses; the instructions leave it as it is
    """

    rows: tuple[Emitted, ...]
    weights: Array
    settled: int
    clock_at: int


def interleaved(rows: Sequence[Emitted], weights: Array) -> Interleaved | None:
    """The instructions for sixteen streams; None where one of them has no such form."""
    ticks = [row.instruction for row in rows if isinstance(row.instruction, Tick)]
    if len(ticks) != 1:
        return None
    (tick,) = ticks
    clock: Any = tick.clock
    interleaving = Interleaving(weights, clock)
    try:
        made = tuple(
            Emitted(instruction, row.node, row.op)
            for row in rows
            if row.instruction is not tick
            for instruction in interleaving.of(row.instruction)
        )
    except NotInterleavedError:
        return None
    return Interleaved(made, interleaving.image.image(), interleaving.settled, byte_of(clock))


def byte_of(value: Value) -> int:
    """The first byte of a tensor in its region."""
    return value.buffer.offset + value.offset * value.dtype.itemsize


class Interleaving:
    """What the instructions of a program share."""

    def __init__(self, weights: Array, clock: Value) -> None:
        self.image = Image(Region.WEIGHTS)
        self.settled = 1
        self._weights = weights
        self._clock = clock
        self._expanded: dict[int, Buffer] = {}

    def of(self, instruction: Instruction) -> Iterable[Instruction]:
        """What an instruction becomes. Raises NotInterleavedError."""
        for name, _, value in instruction.operands():
            assert isinstance(value, Value), name
            if value.buffer is self._clock.buffer and name != "clock":
                raise NotInterleavedError(f"{instruction.kernel}: reads the clock as {name}")
        try:
            form = FORMS[type(instruction)]
        except KeyError:
            raise NotInterleavedError(instruction.kernel) from None
        return form(self, instruction)

    def constant(self, value: Any) -> Array:
        """The elements of a tensor in the weights."""
        if value.buffer.region is not Region.WEIGHTS:
            raise NotInterleavedError("a table in memory")
        size = value.dtype.itemsize
        strides = tuple(step * size for step in value.strides)
        return np.ndarray(value.shape, value.dtype, self._weights.data, byte_of(value), strides)

    def data(self, value: Any, offset: int = 0) -> Value:
        """A tensor of each stream, from its element ``offset`` on, as words; constants are repeated for all."""
        buffer = value.buffer
        inside = (value.offset + offset) * value.dtype.itemsize
        if buffer.region is Region.WEIGHTS:
            target = self._repeated(buffer)
        else:
            target = Buffer(buffer.region, buffer.size * LANES, buffer.offset * LANES)
        words = target.size // WORD
        if inside % WORD:
            raise NotInterleavedError("elements of less than a word")
        return Value(target, inside // WORD * LANES, (words,), (1,), np.dtype(np.float32))

    def _repeated(self, buffer: Buffer) -> Buffer:
        if id(buffer) not in self._expanded:
            raw = self._weights[buffer.offset : buffer.offset + buffer.size // WORD * WORD]
            self._expanded[id(buffer)] = self.image.add(np.repeat(raw.view(np.int32), LANES), shared=True)
        return self._expanded[id(buffer)]

    def table(self, array: Array) -> Value:
        """An array that all streams share."""
        buffer = self.image.add(array, shared=True)
        return Value(buffer, 0, array.shape, _dense(array.shape), array.dtype)

    def shared(self, value: Any) -> Value:
        """A tensor in the weights as it is."""
        return self.table(np.ascontiguousarray(self.constant(value)))

    def whole(self, value: Any) -> Array:
        """All elements in the weights from the first of a tensor on, as far as its buffer goes."""
        end = value.buffer.offset + value.buffer.size
        return self._weights[byte_of(value) : end].view(value.dtype)

    def settle(self, frames: int, frames_of_pulse: int) -> None:
        """Take note that so many frames of a stream must be over."""
        self.settled = max(self.settled, -(-frames // max(frames_of_pulse, 1)))

    def unending(self, end: Any) -> None:
        """Require that a wire has no end that is known before the stream's."""
        if end.buffer.region is Region.WEIGHTS and int(self.constant(end).ravel()[0]) < ENDLESS:
            raise NotInterleavedError("a wire of constant length")

    def is_clock(self, clock: Any) -> bool:
        """Whether it is that of the stream. Raises NotInterleavedError where it is neither that nor always 0."""
        if clock.buffer.region is Region.WEIGHTS:
            if int(self.constant(clock).ravel()[0]):
                raise NotInterleavedError("a clock that stands")
            return False
        if byte_of(clock) != byte_of(self._clock) or clock.buffer.region is not Region.STATE:
            raise NotInterleavedError("another clock")
        return True

    def copied(self, source: Value, target: Value, loops: Loops) -> Iterator[Instruction]:
        """Copy words, of sixteen streams; strides in words of one of them."""
        sizes = (*loops.sizes, LANES)
        strides = tuple((*(step * LANES for step in each), 1) for each in loops.strides)
        for (a, b), inner in Loops(sizes, strides).merged().inside(COPY_LOOPS):
            yield Copy(
                src=_further(source, a),
                dst=_further(target, b),
                size=WORD,
                **numbered("n", inner.sizes),
                **numbered("a", inner.strides[0]),
                **numbered("b", inner.strides[1]),
            )

    def finish(self, finish: Finish) -> Finish:
        """What follows a product. Raises NotInterleavedError where it is a gate."""
        if finish.gate_count:
            raise NotInterleavedError("a gate")
        steps = [self._step(step) for step in finish.steps]
        return Finish(flat=False, gate_count=0, step_count=len(steps), gates=(), steps=steps)

    def _step(self, step: Step) -> Step:
        operand, rows = step.operand, step.rows
        if operand is None:
            return step
        by_column = STEPS[step.code] in BY_COLUMN
        return Step(
            code=step.code,
            parameter=step.parameter,
            operand=self.shared(operand) if by_column else self.data(operand),
            rows=None if rows is None else self.shared(rows),
        )


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def _further(value: Value, words: int) -> Value:
    """The same tensor from a word further on."""
    return Value(value.buffer, value.offset + words, value.shape, value.strides, value.dtype)


Form: TypeAlias = Callable[[Interleaving, Any], Iterable[Instruction]]
F = TypeVar("F", bound=Form)
FORMS: dict[type[Instruction], Form] = {}


def form_of(*kinds: type[Instruction]) -> Callable[[F], F]:
    """Declare what instructions become."""

    def declare(function: F) -> F:
        FORMS.update(dict.fromkeys(kinds, function))
        return function

    return declare


@form_of(Product)
def _product(cx: Interleaving, row: Product) -> Iterator[Instruction]:
    if row.form != "f32":
        raise NotInterleavedError("weights that are not f32")
    packed, bias = cx.constant(row.W).ravel(), cx.constant(row.bias).ravel()[: row.N]
    padded = np.zeros(-(-row.N // COLUMNS) * COLUMNS, np.float32)
    padded[: row.N] = bias
    yield InterleavedProduct(
        x=cx.data(row.x),
        W=cx.table(interleaved_weights(packed, row.T * row.K, row.N)),
        bias=cx.table(padded),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.shared(row.rows_x),
        rows_y=cx.shared(row.rows_y),
        T=row.T,
        taps=cx.shared(row.taps),
        K=row.K,
        N=row.N,
        accumulate=row.accumulate,
        finish=cx.finish(row.finish),
    )


@form_of(Depthwise)
def _depthwise(cx: Interleaving, row: Depthwise) -> Iterator[Instruction]:
    yield InterleavedDepthwise(
        x=cx.data(row.x),
        W=cx.shared(row.W),
        bias=cx.shared(row.bias),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.shared(row.rows_x),
        rows_y=cx.shared(row.rows_y),
        T=row.T,
        taps=cx.shared(row.taps),
        C=row.C,
        finish=cx.finish(row.finish),
    )


@form_of(LayerNormRows)
def _layernorm(cx: Interleaving, row: LayerNormRows) -> Iterator[Instruction]:
    yield InterleavedLayerNorm(
        x=cx.data(row.x),
        scale=cx.shared(row.scale),
        bias=cx.shared(row.bias),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.shared(row.rows_x),
        rows_y=cx.shared(row.rows_y),
        R=row.R,
        eps=row.eps,
    )


@form_of(Pool)
def _pool(cx: Interleaving, row: Pool) -> Iterator[Instruction]:
    yield Pool(
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
    return cx.copied(cx.data(row.src), cx.data(row.dst), Loops(sizes, strides))


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
    for offsets, inner in loops.merged().inside(CHAIN_LOOPS):
        moved = [
            (ChainOutput if part is row.output else ChainInput)(
                tensor=_further(tensor, offset), dtype=F32, **numbered("step", steps)
            )
            for part, tensor, offset, steps in zip(parts, tensors, offsets, inner.strides)
        ]
        yield Chain32(
            **numbered("s", inner.sizes),
            input_count=row.input_count,
            op_count=row.op_count,
            inputs=moved[:-1],
            output=moved[-1],
            ops=row.ops,
        )


@form_of(FillEnds)
def _fill_ends(cx: Interleaving, row: FillEnds) -> Iterable[Instruction]:
    if not cx.is_clock(row.clock):
        raise NotInterleavedError("ends of every pulse")
    cx.unending(row.end)
    cx.settle(row.shift + row.keep, row.P)
    overlap = row.overlap - row.keep
    ahead = row.offset + overlap - row.shift
    if row.in_place and ahead == 0:
        return ()
    if not 0 <= ahead <= overlap or row.size % WORD:
        raise NotInterleavedError("frames that are not there yet")
    words = row.size // WORD
    sizes = (row.P + row.keep, row.run * words)
    strides = ((row.step_x * words, 1), (row.step_y * words, 1))
    source = _further(cx.data(row.x), ahead * row.step_x * words * LANES)
    return cx.copied(source, cx.data(row.y), Loops(sizes, strides))


def _begun(cx: Interleaving, row: Frames) -> Iterator[Instruction]:
    """Take note of the frames in front of the stream; load the state of a sequence of its own."""
    if cx.is_clock(row.clock):
        cx.unending(row.end)
        cx.settle(row.offset, row.T)
        return
    if row.offset or int(cx.constant(row.end).ravel()[0]) < row.T:
        raise NotInterleavedError("a sequence that is not whole")
    if row.reload:
        loops = Loops((row.B, row.H), ((row.step_h0, 1), (row.H, 1)))
        yield from cx.copied(cx.data(row.h0), cx.data(row.h), loops)


def _recurrence(
    cx: Interleaving, row: Gru | SmallGrus, weights: Array, bias: Array, step_x: int
) -> Iterator[Instruction]:
    yield from _begun(cx, row)
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
