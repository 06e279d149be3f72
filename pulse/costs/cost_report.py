"""The cost report of a model: shapes, parameters, multiply-adds and memory, for each node and in all."""

from typing import Any

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.errors import DimError
from pulse.ops.work import Work
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Table, Text
from pulse.support.wording import count_of

COLUMNS = ("node", "op", "output", "parameters", "multiply-adds", "elementwise")


@record
class NodeCost:
    """One node: its outputs and its cost.

    node        name of the node
    op          its operation
    shapes      shapes of its outputs, as text
    parameters  numbers of the float constants that it is the first to read
    work        multiply-adds and elementwise operations; None if unknown
    """

    node: str
    op: str
    shapes: str
    parameters: int
    work: Work | None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data, for JSON."""
        work = self.work
        return {
            "node": self.node,
            "op": self.op,
            "shapes": self.shapes,
            "parameters": self.parameters,
            "macs": None if work is None else str(work.macs),
            "elementwise": None if work is None else str(work.elementwise),
        }


@record
class PulseCost:
    """The cost of a pulsed model.

    pulse        frames of the symbol in each pulse
    work         the work of one pulse, garbage at the ends and frames that are computed again included
    delay_bytes  bytes of buffers of past frames
    state_bytes  bytes of these buffers, recurrent states and registers
    """

    pulse: int
    work: Work
    delay_bytes: int
    state_bytes: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data, for JSON."""
        return {
            "pulse_frames": self.pulse,
            "macs_per_pulse": int(self.work.macs),
            "elementwise_per_pulse": int(self.work.elementwise),
            "delay_bytes": self.delay_bytes,
            "state_bytes": self.state_bytes,
        }


@record
class ProgramCost:
    """The memory of a program, in bytes: weights once, state and arena for each stream."""

    instructions: int
    weight_bytes: int
    state_bytes: int
    arena_bytes: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data, for JSON."""
        return {
            "instructions": self.instructions,
            "program_weight_bytes": self.weight_bytes,
            "program_state_bytes": self.state_bytes,
            "program_arena_bytes": self.arena_bytes,
        }


@record
class CostReport(Report):
    """The parts of a model and their cost.

    title         the model's name
    symbol        the dim that is time; None if there is not exactly one
    rate_hz       frames of the symbol per second, if known
    rows          one for each node
    parameters    numbers in float constants, each counted once; tables that a file stores are among them
    weight_bytes  bytes of all constants
    work          multiply-adds and elementwise operations, as functions of the symbols
    uncounted     ops whose work is not known
    pulse_cost    the cost of the pulsed model; None without a pulse
    program_cost  the cost of the program; None if it is not compiled
    refused       why it does not stream; None if it does, or was not tried
    """

    title: str
    symbol: Symbol | None
    rate_hz: float | None
    rows: tuple[NodeCost, ...]
    parameters: int
    weight_bytes: int
    work: Work
    uncounted: tuple[str, ...] = ()
    pulse_cost: PulseCost | None = None
    program_cost: ProgramCost | None = None
    refused: str | None = None

    def per_frame(self, amount: TDim) -> float | None:
        """Return how much of an amount each frame of the symbol adds in a long stream; None if that has no limit."""
        if self.symbol is None:
            return None
        try:
            return float(amount.slope(self.symbol))
        except DimError:
            return None

    def per_second(self, amount: TDim) -> float | None:
        """Return an amount for a second of the stream; None if the rate is unknown."""
        frame = self.per_frame(amount)
        return None if frame is None or self.rate_hz is None else frame * self.rate_hz

    def totals(self) -> Pairs:
        """Return the totals of the model, of its pulse and of its program."""
        pairs = [
            ("parameters", f"{self.parameters:,}"),
            ("weights", count_of(self.weight_bytes, "byte", form=",")),
            ("multiply-adds", self._amount(self.work.macs)),
            ("elementwise", self._amount(self.work.elementwise)),
        ]
        if self.uncounted:
            pairs.append(("not counted", ", ".join(self.uncounted)))
        if self.pulse_cost is not None:
            work, pulse = self.pulse_cost.work, self.pulse_cost.pulse
            state_bytes = count_of(self.pulse_cost.state_bytes, "byte", form=",")
            state = f"{state_bytes}, {self.pulse_cost.delay_bytes:,} of them delay buffers"
            pairs += [
                ("pulse", f"{pulse:,} frame{'s' if pulse > 1 else ''}"),
                ("multiply-adds", self._pulse_text(work.macs, pulse)),
                ("elementwise", self._pulse_text(work.elementwise, pulse)),
                ("state", state),
            ]
        if self.program_cost is not None:
            compiled = self.program_cost
            pairs.append(
                (
                    "program",
                    f"{count_of(compiled.instructions, 'instruction', form=',')}, "
                    f"{count_of(compiled.weight_bytes, 'byte', form=',')} of weights, "
                    f"{compiled.state_bytes:,} of state, {compiled.arena_bytes:,} of arena",
                )
            )
        return Pairs(pairs)

    def sections(self) -> list[Section]:
        """Return the totals, then one line for each node."""
        rows: list[list[str]] = []
        for row in self.rows:
            work = ("?", "?") if row.work is None else (str(row.work.macs), str(row.work.elementwise))
            rows.append([row.node, row.op, row.shapes, f"{row.parameters:,}", *work])
        refusal_text = [Text(f"not streamed: {self.refused}")] if self.refused else []
        return [Text(self.title), self.totals(), Table(f"nodes, {len(rows)}", COLUMNS, rows), *refusal_text]

    def values(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON; amounts that depend on a length are text."""
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
            "uncounted": self.uncounted,
            **({} if self.pulse_cost is None else self.pulse_cost.as_dict()),
            **({} if self.program_cost is None else self.program_cost.as_dict()),
            "nodes": self.rows,
            "refused": self.refused,
        }

    def _amount(self, amount: TDim) -> str:
        frame, second = self.per_frame(amount), self.per_second(amount)
        text = f"{int(amount):,}" if amount.is_const else str(amount)
        if frame is None or amount.is_const:
            return text
        return f"{text}: {_short_number(frame)} per frame" + (
            "" if second is None else f", {_short_number(second)} per second"
        )

    def _pulse_text(self, amount: TDim, pulse: int) -> str:
        text = f"{int(amount):,} a pulse"
        if self.rate_hz is None:
            return text
        return f"{text}, {_short_number(int(amount) * self.rate_hz / pulse)} per second"


def _short_number(amount: float) -> str:
    """Return a number with three or four digits: 1234, 12.3 k, 45.6 M."""
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if amount >= unit:
            return f"{amount / min(unit, 10.0 ** (3 * (int(np.log10(amount)) // 3))):.3g} {name}"
    return f"{amount:.4g}"
