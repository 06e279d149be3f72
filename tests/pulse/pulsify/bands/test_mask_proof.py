"""Proved patterns of random expressions of positions hold at every position."""

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.shape import AddAxis, Transpose
from pulse.ops.time_position import Range
from pulse.pulsify.bands.mask_proof import MaskProof
from pulse.pulsify.bands.pattern import Interval, Pattern, PatternExtent
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire

PERIOD, DISTANCE, FRAMES = 6, 14, 40
NUMBERS = (-3, -1, 0, 1, 2, 3, 5, 6, 12)
DIVISORS = (1, 2, 3, 4, 6)


class Expressions:
    """Random values of a row's and a column's position, as graphs have them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.scope = SymbolScope()
        self.symbol = self.scope.symbol("T")
        self.graph = TypedGraph()
        steps = self.wire(Range(0, 1, TDim.of(self.symbol), np.dtype(np.int64)))
        rows, columns = self.wire(AddAxis(1), steps), self.wire(AddAxis(0), steps)
        self.numbers = [rows, columns, self.wire(Elementwise("sub"), rows, columns)]
        self.numbers.append(add_constant(self.graph, "frames", np.array(TDim.of(self.symbol), object)))
        self.truths: list[OutletId] = []

    def wire(self, op: Elementwise | Range | AddAxis | Cast | Transpose, *inputs: OutletId) -> OutletId:
        return wire(self.graph, f"n{len(self.graph.nodes)}", op, list(inputs))[0]

    def number(self, choices: tuple[int, ...] = NUMBERS) -> OutletId:
        value = np.array(self.rng.choice(choices), np.int64)
        return add_constant(self.graph, f"n{len(self.graph.nodes)}", value)

    def pick(self, wires: list[OutletId]) -> OutletId:
        return wires[self.rng.integers(len(wires))]

    def grow(self) -> None:
        """Append a random value."""
        x, y = self.pick(self.numbers), self.pick(self.numbers)
        y = y if self.rng.random() < 0.5 else self.number()
        kind = str(
            self.rng.choice(["add", "sub", "mul", "div", "mod", "max", "min", "abs", "where", "test", "and"])
        )
        if kind in ("div", "mod"):
            self.numbers.append(self.wire(Elementwise(kind), x, self.number(DIVISORS)))
        elif kind == "mul":
            self.numbers.append(self.wire(Elementwise(kind), x, self.number()))
        elif kind == "abs":
            self.numbers.append(self.wire(Elementwise(kind), x))
        elif kind == "where" and self.truths:
            self.numbers.append(self.wire(Elementwise(kind), self.pick(self.truths), x, y))
        elif kind == "and" and self.truths:
            joined = self.wire(
                Elementwise(str(self.rng.choice(["and", "or"]))), *map(self.pick, [self.truths] * 2)
            )
            self.truths.append(self.wire(Elementwise("not"), joined))
            self.numbers.append(self.wire(Cast(np.dtype(np.int64)), joined))
        elif kind in ("add", "sub", "max", "min"):
            self.numbers.append(self.wire(Elementwise(kind), x, y))
        else:
            kinds = ["less", "less_equal", "greater", "greater_equal", "equal"]
            self.truths.append(self.wire(Elementwise(str(self.rng.choice(kinds))), x, y))
        if self.rng.random() < 0.1 and self.graph.fact(self.numbers[-1]).rank == 2:
            self.numbers.append(self.wire(Transpose((1, 0)), self.numbers[-1]))

    def run(self, frames: int) -> dict[OutletId, Array]:
        """Each value at every row and column."""
        values_of: dict[OutletId, Array] = {}
        for number in self.graph.order([*self.numbers, *self.truths]):
            node = self.graph.nodes[number]
            outlet = OutletId(number)
            inputs = [values_of[read] for read in node.inputs]
            (values_of[outlet],) = node.op.eval(inputs, {self.symbol: frames})
            if values_of[outlet].dtype == object:
                values_of[outlet] = np.array(frames, np.int64)
        return values_of


def is_inside(value: Array, bounds: Interval) -> bool:
    low, high = (np.asarray(bound, np.float64) for bound in bounds)
    return bool(((value >= low) & (value <= high)).all())


def assert_pattern_holds(value: Array, pattern: Pattern) -> bool:
    """Require that the values are as the pattern says; returns whether it says that they repeat."""
    full = np.broadcast_to(value, (FRAMES, FRAMES)).astype(np.int64)
    rows, columns = np.indices(full.shape)
    assert is_inside(full, pattern.bounds)
    if value.ndim == 2 and 1 not in value.shape:
        assert is_inside(full[rows - columns >= DISTANCE], pattern.below)
        assert is_inside(full[columns - rows >= DISTANCE], pattern.above)
    if pattern.repeats and 0 not in pattern.slopes:
        moved = full[PERIOD:, PERIOD:] - full[:-PERIOD, :-PERIOD]
        assert (moved == int(np.asarray(pattern.drift * PERIOD).item())).all()
    return pattern.is_steady


@pytest.mark.parametrize("seed", range(12))
def test_proved_patterns_are_true(seed: int) -> None:
    """Bounds near and far from the diagonal, and that values repeat, at one length and a longer one."""
    steady = 0
    for number in range(6):
        expressions = Expressions(100 * seed + number)
        for _ in range(25):
            expressions.grow()
        values, longer = expressions.run(FRAMES), expressions.run(FRAMES + 7)
        proof = MaskProof(
            expressions.graph,
            expressions.symbol,
            TDim.of(expressions.symbol),
            PatternExtent(PERIOD, DISTANCE, -1e4),
        )
        for outlet in (*expressions.numbers, *expressions.truths):
            pattern = proof.pattern(outlet)
            if assert_pattern_holds(values[outlet], pattern):
                steady += 1
                first, second = (
                    np.broadcast_to(arrays[outlet], (size, size))
                    for arrays, size in ((values, FRAMES), (longer, FRAMES + 7))
                )
                assert (first == second[:FRAMES, :FRAMES]).all()
    assert steady > 20
