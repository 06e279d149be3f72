"""Mutants of pulsed graphs and of programs: deliberate errors that a proof must find."""

import os
import pickle
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pulse.facts import Array, TypedFact
from pulse.graph import OutletId
from pulse.jit.rows.instruction import Instruction
from pulse.jit.rows.pointer import REGION_SHIFT
from pulse.models import PulsedModel
from pulse.ops.attention import BandedAttention
from pulse.ops.clock import Clock
from pulse.ops.concat import Concat
from pulse.ops.cumulative import CumSum
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.op import Op
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.ops.recurrent_cells import Activation, Cell
from pulse.ops.recurrent_gates import GATE_COUNTS, CellKind
from pulse.ops.shape import Reshape, Transpose
from pulse.ops.source import Const
from pulse.ops.stateful import OnPulses, Stateful
from pulse.ops.time import Delay, LastFrames
from pulse.ops.time_ends import FillEnds
from pulse.ops.time_position import Positions, Range
from pulse.program.backends.reference import ReferenceProgram
from pulse.program.machine.machine import run_python
from pulse.program.native.native_program import NativeProgram
from pulse.program.table.table import link, row_starts
from pulse.program.whole_stream import stream_whole
from pulse.proof.oracle import Feeds
from pulse.pulsify.driver import pulsify
from pulse.support.mapping import aligned_bytes
from tests.pulse.model_builder import ModelBuilder

F = np.float32
PLANTED_AT = 5
"""The pulse in which something goes wrong once."""
PLANTED = 1e-4
"""How wrong it is then: this part of the largest value of the wire."""
TIME_LIMIT_S = 60


# Models


def residual() -> PulsedModel:
    """A causal filter, one that looks ahead, and their sum."""
    builder = ModelBuilder(x="1,2,T")
    causal = builder.conv(builder.pad(builder["x"], (2, 0)), 3, name="causal")
    same = builder.conv(builder.apply("tanh", causal), 3, (1, 1), name="same")
    return pulsify(builder.model(builder.apply("add", same, causal)), pulse=4)


def hourglass() -> PulsedModel:
    """Half as many frames inside, and a way around."""
    builder = ModelBuilder(1, x="1,3,T")
    down = builder.apply("tanh", builder.conv(builder.pad(builder["x"], (3, 0)), 4, stride=2, name="down"))
    inner = builder.conv(down, 3, (2, 0), name="inner")
    up = builder.deconv(inner, 4, stride=2, name="up")
    y = builder.cut(up, 1, end=builder.length(builder["x"]) + 1)
    return pulsify(builder.model(builder.apply("add", y, builder["x"])), pulse=4)


def recurrent(kind: CellKind) -> PulsedModel:
    """A layer, its outputs and its last state."""
    builder = ModelBuilder(2, x="T,1,3")
    more = (Activation("sigmoid"), Activation("tanh"), Activation("tanh"))
    op = Recurrent(Cell(kind, more[: 2 if kind == "gru" else 3]), 4, False, None, ())
    rows = GATE_COUNTS[kind] * 4
    weights = [builder.constant(0.5 * builder.taps(*shape)) for shape in ((rows, 3), (rows, 4), (2 * rows,))]
    y = builder.add("layer", op, builder["x"], *weights)
    return pulsify(builder.model(y, OutletId(y.node, 1), names=["y", "last"]), pulse=3)


def mirrored_ends() -> PulsedModel:
    """Frames mirrored at both ends, then pools."""
    builder = ModelBuilder(3, x="1,2,T")
    x = builder.conv(builder.pad(builder["x"], (2, 2), "reflect"), 5, name="filter")
    return pulsify(builder.model(builder.pool(builder.apply("softsign", x), "avg", 3, stride=2)), pulse=6)


def sums() -> PulsedModel:
    """A running sum, a ramp, constants at the ends."""
    builder = ModelBuilder(4, x="1,2,T")
    total = builder.add("total", CumSum(2, True, False), builder.apply("tanh", builder["x"]))
    ramp = builder.add("ramp", Range(0.5, 0.01, builder.length(total), np.dtype(F)))
    y = builder.apply("add", builder.apply("softsign", total), ramp)
    return pulsify(builder.model(builder.conv(builder.ends(y, 2, 1), 3, name="after")), pulse=4)


def attentive() -> PulsedModel:
    """Each frame asks the four before it."""
    builder = ModelBuilder(5, x="1,T,4")
    q, k, v = (
        builder.add(name, MatMul(), builder["x"], builder.constant(builder.taps(4, 4) / F(2)))
        for name in "qkv"
    )
    bias = builder.rng.standard_normal((1, 5)).astype(F)
    y = builder.add("seen", BandedAttention(0.5, bias, 4), q, k, v)
    return pulsify(builder.model(y), pulse=4)


def gated_features() -> PulsedModel:
    """Products, a norm, a gate and a softmax over features."""
    builder = ModelBuilder(6, x="1,T,6")
    a, b = (
        builder.add(name, MatMul(), builder["x"], builder.constant(builder.taps(6, 6) / F(3)))
        for name in "ab"
    )
    gate = builder.apply("mul", builder.apply("sigmoid", a), builder.apply("tanh", b))
    rows = builder.add("norm", LayerNorm(2, 1e-5), gate, builder.constant(builder.taps(6)))
    late = builder.add("late", Transpose((0, 2, 1)), rows)
    mixed = builder.conv(late, 3, (2, 0), name="mix")
    return pulsify(builder.model(builder.add("shares", Softmax(1), mixed)), pulse=5)


def stacked_frames() -> PulsedModel:
    """Pairs of adjacent frames, joined with the frame before them."""
    builder = ModelBuilder(7, x="1,2,T")
    builder.scope.assume("T/2*2 == T")
    half = builder.dim("T/2")
    pairs = builder.add(
        "pairs", Reshape((builder.dim("1"), builder.dim("2"), half, builder.dim("2"))), builder["x"]
    )
    turned = builder.add("turned", Transpose((0, 1, 3, 2)), pairs)
    rows = builder.add("rows", Reshape((builder.dim("1"), builder.dim("4"), half)), turned)
    before = builder.cut(builder.pad(rows, (1, 0)), 0, end=half, name="before")
    both = builder.add("both", Concat(1), rows, before)
    return pulsify(builder.model(builder.conv(both, 3, (2, 0), out=3, name="join")), pulse=4)


MODELS: dict[str, Callable[[], PulsedModel]] = {
    "residual": residual,
    "hourglass": hourglass,
    "gru": lambda: recurrent("gru"),
    "lstm": lambda: recurrent("lstm"),
    "mirrored": mirrored_ends,
    "sums": sums,
    "attentive": attentive,
    "gated": gated_features,
    "stacked": stacked_frames,
}


# Ops that go wrong once


@dataclass(frozen=True, eq=False)
class FaultyOp(Stateful):
    """An op one element of whose output is off in one pulse."""

    op: Op

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def awaits(self) -> Any:
        return self.op.awaits if isinstance(self.op, Stateful) else None

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return self.op.facts(inputs)

    def initial_state(self) -> list[Array]:
        return self.op.initial_state() if isinstance(self.op, Stateful) else []

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        results = (
            self.op.step(inputs, state, clock)
            if isinstance(self.op, Stateful)
            else list(self.op.eval(inputs, {}))
        )
        if clock.pulse == PLANTED_AT and clock.end is None:
            y = results[0].copy()
            index = np.unravel_index(int(np.nanargmax(np.abs(y))), y.shape)
            y[index] += PLANTED * y[index]
            results[0] = y
        return list(results)


@dataclass(frozen=True, eq=False)
class Stale(FaultyOp):
    """A stateful op that forgets to keep its state in one pulse."""

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        assert isinstance(self.op, Stateful)
        before = [array.copy() for array in state]
        results = self.op.step(inputs, state, clock)
        if clock.pulse == PLANTED_AT:
            state[:] = before
        return results


@dataclass(frozen=True, eq=False)
class EarlyEviction(FaultyOp):
    """A delay that is right until its buffer is full, and from then on has evicted one frame too many."""

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        assert isinstance(self.op, Delay)
        axis, (x,) = self.op.axis, inputs
        kept_frames = state[0].shape[axis]
        if (clock.pulse + 1) * x.shape[axis] > kept_frames > 0:
            frames = np.moveaxis(np.concatenate([state[0], x], axis), axis, 0)
            frames[0] = frames[1]
            state[0] = np.moveaxis(frames, 0, axis)[(slice(None),) * axis + (slice(0, kept_frames),)]
        return self.op.step(inputs, state, clock)


# Mutants of graphs


@dataclass(frozen=True)
class GraphMutant:
    """A graph with another op in one node; ``slow`` where only the numpy backend has it."""

    name: str
    node: int
    op: Op
    slow: bool = False


def graph_mutants(model: PulsedModel) -> Iterator[GraphMutant]:
    """Delays that are off by one, stale and wrong states, wrong taps, wrong ends, wrong positions, planted errors."""
    graph = model.graph
    for number in graph.order(model.targets):
        node = graph.nodes[number]
        for name, op, slow in changed_ops(node.op, [graph.fact(o).dtype for o in node.inputs]):
            yield GraphMutant(f"{node.name}: {name}", number, op, slow)


def changed_ops(op: Op, dtypes: Sequence[Any]) -> Iterator[tuple[str, Op, bool]]:
    if isinstance(op, Delay):
        frames = op.initial.shape[op.axis]
        longer = np.concatenate(
            [op.initial, np.take(op.initial, [-1], op.axis) if frames else _frame(op)], op.axis
        )
        yield "a frame later", replace(op, delay=op.delay + 1, initial=longer), False
        if op.delay:
            shorter = np.take(op.initial, range(1, frames), op.axis)
            yield "a frame earlier", replace(op, delay=op.delay - 1, initial=shorter), False
        for index in (0, frames - 1) if frames else ():
            other = op.initial.copy()
            np.moveaxis(other, op.axis, 0)[index].flat[0] += 0.01
            yield f"other history {index}", replace(op, initial=other), False
        yield "stale once", Stale(op), True
        yield "evicts too early", EarlyEviction(op), True
    if isinstance(op, FillEnds):
        yield "ends a frame later", replace(op, shift=op.shift + 1), False
        yield "a frame later", replace(op, offset=op.offset + 1), False
        yield "one frame less", replace(op, length=op.length - 1), False
        if op.mode == "constant":
            yield "another fill", replace(op, fill=op.fill + 0.01), False
    if isinstance(op, Positions):
        yield "a frame later", replace(op, offset=op.offset + 1), False
        yield "drifting", replace(op, step_size=op.step_size * 1.01), False
    if isinstance(op, OnPulses):
        yield "a frame later", replace(op, offset=op.offset + 1), False
        yield "one frame less", replace(op, length=op.length - 1), False
        if op.initial_state():
            yield "stale once", Stale(op), True
    if isinstance(op, LastFrames):
        yield "one frame less", replace(op, length=op.length - 1), False
    if isinstance(op, RecurrentStream):
        cell = op.op.cell
        swapped = replace(cell, activations=cell.activations[::-1])
        yield "other activations", replace(op, op=replace(op.op, cell=swapped)), False
        if cell.kind == "gru":
            other = replace(cell, linear_before_reset=not cell.linear_before_reset)
            yield "reset elsewhere", replace(op, op=replace(op.op, cell=other)), False
    if isinstance(op, Elementwise) and op.kind in OTHERS:
        yield OTHERS[op.kind], Elementwise(OTHERS[op.kind]), False
    if isinstance(op, Const) and op.value.dtype == F and op.value.size > 1:
        for index in sorted({0, op.value.size // 2, op.value.size - 1}):
            value = op.value.copy()
            value.flat[index] *= 1.01
            yield f"tap {index} off by 1 %", Const(value), False
    if not op.copies and not isinstance(op, Const) and all(dtype == F for dtype in dtypes):
        yield "one error of 1e-4", FaultyOp(op), True


OTHERS = {"tanh": "softsign", "softsign": "tanh", "add": "sub", "mul": "add"}
"""An elementwise function, and another one in its place."""


def _frame(op: Delay) -> Array:
    shape = list(op.initial.shape)
    shape[op.axis] = 1
    return np.zeros(shape, op.initial.dtype)


def mutate(model: PulsedModel, mutant: GraphMutant) -> PulsedModel:
    """The model with the mutant in its graph; the good model is unchanged."""
    graph = copy(model.graph)
    graph.nodes = [copy(node) for node in graph.nodes]
    node = graph.nodes[mutant.node]
    node.op, node.outputs = mutant.op, [copy(outlet) for outlet in node.outputs]
    if isinstance(mutant.op, Const):
        node.outputs[0].fact = replace(node.outputs[0].fact, value=mutant.op.value)
    return replace(model, graph=graph)


def program_of(model: PulsedModel, mutant: GraphMutant) -> ReferenceProgram | NativeProgram:
    wrong = mutate(model, mutant)
    return ReferenceProgram(wrong) if mutant.slow else NativeProgram(wrong)


# Mutants of programs


@dataclass(frozen=True)
class TableMutant:
    """A program whose table or memory is another."""

    name: str
    table: Array
    rows: int
    weights: Array
    initial: Array


def table_mutants(program: NativeProgram, rng: np.random.Generator) -> Iterator[TableMutant]:
    """Rows left out and exchanged, arguments and operands off by one, other weights, other first states."""
    table = program.unlinked
    starts = list(row_starts(table))
    spans = [(start, start + int(table[start + 1])) for start in starts]
    plain = TableMutant("", table, len(starts), program.weights, program.initial)
    for number, (start, stop) in enumerate(spans):
        kernel = program.instructions[number].kernel
        without = np.concatenate([table[:start], table[stop:]])
        yield replace(plain, name=f"row {number} {kernel}: left out", table=without, rows=plain.rows - 1)
        if number:
            first = spans[number - 1][0]
            exchanged = np.concatenate([table[:first], table[start:stop], table[first:start], table[stop:]])
            yield replace(plain, name=f"row {number} {kernel}: too early", table=exchanged)
        for index in range(start + 2, stop):
            word = int(table[index])
            step = 4 if word >> REGION_SHIFT else 1
            if rng.random() > 0.25 or not (word >> REGION_SHIFT or 0 < word < 1 << 20):
                continue
            for change in (step, -step):
                other = table.copy()
                other[index] = word + change
                if reads_beyond_operand(program.instructions[number].instruction, other[start:stop]):
                    continue
                yield replace(
                    plain,
                    name=f"row {number} {kernel}: argument {index - start - 2} {change:+d}",
                    table=other,
                )
    for name in ("weights", "initial"):
        image = getattr(program, name).copy()
        floats = image.view(F)
        places = np.flatnonzero((np.abs(floats) > 1e-3) & (np.abs(floats) < 1e3))
        for index in rng.permutation(places)[:6]:
            other = image.copy()
            other.view(F)[index] *= F(1.01)
            yield replace(plain, name=f"{name}: element {index} off by 1 %", **{name: other})


def reads_beyond_operand(declared: Instruction, words: Array) -> bool:
    """Whether a row asks for more elements of an operand than there are: no proof finds the zeros after a table."""
    row = type(declared).from_words(words, 0, [], declared.form)
    return any(row.count_elements(spec) > value.size for _, spec, value in declared.operands() if spec.count)


def stays_inside(model: PulsedModel, program: NativeProgram, mutant: TableMutant) -> bool:
    """Whether a stream in plain Python leaves no region, so that the compiled table may be run."""
    regions = [mutant.weights.copy(), mutant.initial.copy(), np.zeros(program.arena_bytes, np.uint8)]
    where = [place for _, place in program.input_places]
    places = [place.view(regions[place.region]) for place in where]
    rng = np.random.default_rng(0)
    try:
        for _ in range(3):
            for place in places:
                place[...] = rng.standard_normal(place.shape)
            run_python(mutant.table, regions)
        for length, offset in program.length_registers:
            regions[1][offset : offset + 8].view(np.int64)[0] = length.eval({model.symbol: 3 * model.pulse})
        for _ in range(3):
            run_python(mutant.table, regions)
    except (IndexError, ValueError, OverflowError, ZeroDivisionError, MemoryError, AssertionError, TypeError):
        return False
    return True


def adopt(program: NativeProgram, mutant: TableMutant) -> None:
    """Let a program be the mutant."""
    program.table = link(mutant.table)
    program.instructions = program.instructions[: mutant.rows]
    program.weights = aligned_copy(mutant.weights)
    program.initial = mutant.initial


def aligned_copy(image: Array) -> Array:
    memory = aligned_bytes(image.size)
    memory[:] = image
    return memory


def apart(work: Callable[[], Any]) -> Any:
    """The result of work in a separate process; None if that crashes or does not end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            with os.fdopen(write, "wb") as out:
                pickle.dump(work(), out)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    data = b""
    with os.fdopen(read, "rb") as source:
        while select.select([source], [], [], TIME_LIMIT_S)[0]:
            part = os.read(source.fileno(), 1 << 16)
            if not part:
                break
            data += part
        else:
            os.kill(child, 9)
    _, status = os.waitpid(child, 0)
    return pickle.loads(data) if status == 0 else None


def same_bits(
    program: ReferenceProgram | NativeProgram,
    streams: Sequence[Feeds],
    expected: Sequence[Mapping[str, Array]],
) -> bool:
    """Whether a program gives what is expected for each of these inputs, bit by bit."""
    for feeds, outputs in zip(streams, expected, strict=True):
        outputs_of_mutant = stream_whole(program, feeds)
        if any(outputs[name].tobytes() != outputs_of_mutant[name].tobytes() for name in outputs):
            return False
    return True
