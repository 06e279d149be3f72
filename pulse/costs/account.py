"""The account of a model: shapes, parameters, multiply-adds and memory, for each node and in all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pulse.costs.work import WORK, Work, graph_work, op_work
from pulse.dim import Symbol, TDim
from pulse.errors import DimError, InputError
from pulse.facts import Array, is_symbolic
from pulse.model import Model, load
from pulse.ops.delay import Delay
from pulse.ops.loop import Loop
from pulse.ops.op import Op
from pulse.ops.scan import Scan, ScanStream
from pulse.ops.source import Const, Source
from pulse.program.program import Program
from pulse.pulsify.model import PulsedModel
from pulse.typed import TypedGraph, TypedModel

if TYPE_CHECKING:
    from pulse.model import ModelSource


@dataclass(frozen=True)
class Row:
    """One node: what it makes, and what that takes.

    shapes      of its outputs, as text
    parameters  numbers of the float constants that it is the first to read
    work        multiply-adds and elementwise operations; None where nobody knows
    """

    node: str
    op: str
    shapes: str
    parameters: int
    work: Work | None

    def as_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        work = self.work
        return {
            "node": self.node,
            "op": self.op,
            "shapes": self.shapes,
            "parameters": self.parameters,
            "macs": None if work is None else str(work.macs),
            "elementwise": None if work is None else str(work.elementwise),
        }


@dataclass(frozen=True)
class Streamed:
    """What a pulsed model takes.

    pulse        frames of the symbol in each pulse
    work         of one pulse, garbage at the ends and frames that are computed again included
    delay_bytes  buffers of past frames; ``state_bytes`` has them, recurrent states and registers
    """

    pulse: int
    work: Work
    delay_bytes: int
    state_bytes: int

    def as_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return {
            "pulse_frames": self.pulse,
            "macs_per_pulse": int(self.work.macs),
            "elementwise_per_pulse": int(self.work.elementwise),
            "delay_bytes": self.delay_bytes,
            "state_bytes": self.state_bytes,
        }


@dataclass(frozen=True)
class Compiled:
    """What a program takes, in bytes: weights once, state and arena for each stream."""

    instructions: int
    weight_bytes: int
    state_bytes: int
    arena_bytes: int

    def as_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return {
            "instructions": self.instructions,
            "program_weight_bytes": self.weight_bytes,
            "program_state_bytes": self.state_bytes,
            "program_arena_bytes": self.arena_bytes,
        }


@dataclass(frozen=True)
class Account:
    """What a model is made of and what it takes to run it.

    symbol        the dim that is time; None where there is not one alone
    rate_hz       frames of the symbol a second, where known
    parameters    numbers in float constants, each counted once; tables that a file stores are among them
    weight_bytes  of all constants
    work          multiply-adds and elementwise operations, as functions of the symbols
    uncounted     ops whose work is not known
    """

    title: str
    symbol: Symbol | None
    rate_hz: float | None
    rows: tuple[Row, ...]
    parameters: int
    weight_bytes: int
    work: Work
    uncounted: tuple[str, ...] = ()
    streamed: Streamed | None = None
    compiled: Compiled | None = None

    def per_frame(self, amount: TDim) -> float | None:
        """How much of an amount each frame of the symbol adds in a long stream; None where that has no limit."""
        if self.symbol is None:
            return None
        try:
            return float(amount.slope(self.symbol))
        except DimError:
            return None

    def per_second(self, amount: TDim) -> float | None:
        """The same for a second of the stream, where its rate is known."""
        frame = self.per_frame(amount)
        return None if frame is None or self.rate_hz is None else frame * self.rate_hz

    def header(self) -> list[str]:
        """The totals, one a line."""
        pairs = [
            ("parameters", f"{self.parameters:,}"),
            ("weights", f"{self.weight_bytes:,} bytes"),
            ("multiply-adds", self._amount(self.work.macs)),
            ("elementwise", self._amount(self.work.elementwise)),
        ]
        if self.uncounted:
            pairs.append(("not counted", ", ".join(self.uncounted)))
        if self.streamed is not None:
            work, pulse = self.streamed.work, self.streamed.pulse
            pairs += [
                ("pulse", f"{pulse:,} frame{'s' if pulse > 1 else ''}"),
                ("multiply-adds", self._of_pulse(work.macs, pulse)),
                ("elementwise", self._of_pulse(work.elementwise, pulse)),
                (
                    "state",
                    f"{self.streamed.state_bytes:,} bytes, {self.streamed.delay_bytes:,} of them delay buffers",
                ),
            ]
        if self.compiled is not None:
            pairs.append(
                (
                    "program",
                    f"{self.compiled.instructions:,} instructions, {self.compiled.weight_bytes:,} bytes of weights, "
                    f"{self.compiled.state_bytes:,} of state, {self.compiled.arena_bytes:,} of arena",
                )
            )
        return [f"{name:<14} {text}" for name, text in pairs]

    def lines(self) -> list[str]:
        """The totals, then one line for each node."""
        cells = [("node", "op", "output", "parameters", "multiply-adds", "elementwise")]
        for row in self.rows:
            macs, each = ("?", "?") if row.work is None else (str(row.work.macs), str(row.work.elementwise))
            cells.append((row.node, row.op, row.shapes, f"{row.parameters:,}", macs, each))
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
        return [f"{self.title}: {len(self.rows)} nodes", *self.header(), "", *table]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def as_dict(self) -> dict[str, Any]:
        """The same, for JSON; amounts that depend on a length are text."""
        return {
            "model": self.title,
            "symbol": None if self.symbol is None else self.symbol.name,
            "rate_hz": self.rate_hz,
            "parameters": self.parameters,
            "weight_bytes": self.weight_bytes,
            "macs": str(self.work.macs),
            "macs_per_frame": self.per_frame(self.work.macs),
            "macs_per_second": self.per_second(self.work.macs),
            "elementwise": str(self.work.elementwise),
            "elementwise_per_frame": self.per_frame(self.work.elementwise),
            "elementwise_per_second": self.per_second(self.work.elementwise),
            "uncounted": list(self.uncounted),
            **({} if self.streamed is None else self.streamed.as_dict()),
            **({} if self.compiled is None else self.compiled.as_dict()),
            "nodes": [row.as_dict() for row in self.rows],
        }

    def _amount(self, amount: TDim) -> str:
        frame, second = self.per_frame(amount), self.per_second(amount)
        text = f"{int(amount):,}" if amount.is_const else str(amount)
        if frame is None or amount.is_const:
            return text
        return f"{text}: {_short(frame)} a frame" + ("" if second is None else f", {_short(second)} a second")

    def _of_pulse(self, amount: TDim, pulse: int) -> str:
        text = f"{int(amount):,} a pulse"
        return (
            text if self.rate_hz is None else f"{text}, {_short(int(amount) * self.rate_hz / pulse)} a second"
        )


def _short(amount: float) -> str:
    """A number with three or four digits: 1234, 12.3 k, 45.6 M."""
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if amount >= unit:
            return f"{amount / min(unit, 10.0 ** (3 * (int(np.log10(amount)) // 3))):.3g} {name}"
    return f"{amount:.4g}"


def account(
    model: "Program | PulsedModel | TypedModel | Model | ModelSource", rate_hz: float | None = None
) -> Account:
    """What a model costs: the decluttered model of a file; of a pulsed model also its pulses, of a program its memory.

    rate_hz  frames of the symbol a second; ``sample_rate`` of the file's metadata where none is given
    Raises   PulseError: the model cannot be read
    """
    if isinstance(model, Program):
        return replace(account(model.model, rate_hz), compiled=_compiled(model))
    if isinstance(model, PulsedModel):
        return replace(account(model.typed, rate_hz), symbol=model.symbol, streamed=_streamed(model))
    if isinstance(model, TypedModel):
        return _account(model, rate_hz)
    return _account((model if isinstance(model, Model) else load(model)).analyse().declutter(), rate_hz)


def _account(model: TypedModel, rate_hz: float | None) -> Account:
    seen: set[int] = set()
    rows: list[Row] = []
    total, parameters = Work(), 0
    uncounted: dict[str, None] = {}
    for number in model.graph.order():
        node = model.graph.nodes[number]
        if isinstance(node.op, Source | Const):
            continue
        work = None
        if type(node.op) in WORK:
            facts = [outlet.fact for outlet in node.outputs]
            work = op_work(node.op, model.graph.input_facts(node), facts)
            total += work
        else:
            uncounted.setdefault(node.op.name)
        own = sum(value.size for value in _new(_read(model.graph, number), seen) if value.dtype.kind == "f")
        shapes = "; ".join(str(outlet.fact) for outlet in node.outputs)
        rows.append(Row(node.name, node.op.name, shapes, own, work))
        parameters += own
    stored = list(_new(_stored(model.graph), set()))
    return Account(
        model.title,
        model.symbols[0] if len(model.symbols) == 1 else None,
        _rate(model) if rate_hz is None else rate_hz,
        tuple(rows),
        parameters,
        sum(value.nbytes for value in stored),
        total,
        tuple(uncounted),
    )


def _rate(model: TypedModel) -> float | None:
    text = model.metadata.get("sample_rate", "")
    return float(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _read(graph: TypedGraph, number: int) -> Iterator[Array]:
    """The constants that a node reads, and those in its body."""
    node = graph.nodes[number]
    for outlet in node.inputs:
        op = graph.node(outlet).op
        if isinstance(op, Const) and not is_symbolic(op.value):
            yield op.value
    for body in _bodies(node.op):
        yield from _stored(body)


def _stored(graph: TypedGraph) -> Iterator[Array]:
    """The constants that the outputs of a graph need, bodies included."""
    for number in graph.order():
        op = graph.nodes[number].op
        if isinstance(op, Const) and not is_symbolic(op.value):
            yield op.value
        for body in _bodies(op):
            yield from _stored(body)


def _bodies(op: Op) -> Sequence[TypedGraph]:
    if isinstance(op, ScanStream):
        return _bodies(op.op)
    return [op.body.graph] if isinstance(op, Scan | Loop) else []


def _new(values: Iterator[Array], seen: set[int]) -> Iterator[Array]:
    for value in values:
        if id(value) not in seen:
            seen.add(id(value))
            yield value


def _streamed(model: PulsedModel) -> Streamed:
    buffers = model.buffers()
    delays = sum(size for _, op, size in buffers if isinstance(op, Delay))
    return Streamed(model.pulse, graph_work(model.graph), delays, sum(size for _, _, size in buffers))


def _compiled(program: Program) -> Compiled:
    from pulse.program.native import NativeProgram

    if not isinstance(program, NativeProgram):
        raise InputError(f"the {program.backend} backend has no instructions to count; use numba")
    return Compiled(len(program.instructions), program.weights.size, program.state_bytes, program.arena_bytes)
