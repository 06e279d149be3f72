"""Prove that a mask keeps its pattern for streams of any length, from what its nodes compute at each position."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.graph import Node, OutletId
from pulse.ops.concat import Concat
from pulse.ops.cumulative import CumSum
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_within import RangeCheck
from pulse.ops.gather import Gather
from pulse.ops.op import Op
from pulse.ops.shape import Expand, Transpose
from pulse.ops.slice import Slice
from pulse.ops.source import Const
from pulse.ops.time_position import Range
from pulse.pulsify.bands.pattern import (
    ANYTHING,
    LENGTH,
    ONE,
    ZERO,
    Exact,
    Interval,
    Pattern,
    PatternExtent,
    affine,
    combination,
    exact_numbers,
    extreme,
    function,
    is_true,
)
from pulse.pulsify.bands.pattern_elementwise import elementwise, whole_part
from pulse.pulsify.bands.pattern_table import stored_pattern
from pulse.typed import TypedGraph


class MaskProof:
    """The pattern of each wire that depends on positions alone; ``rows`` is the number of query and key frames."""

    def __init__(self, graph: TypedGraph, symbol: Symbol, rows: TDim, extent: PatternExtent) -> None:
        self._graph, self._symbol, self._rows, self._extent = graph, symbol, rows, extent
        self._patterns: dict[OutletId, Pattern] = {}
        self._causes: dict[int, str] = {}

    def reason_to_doubt(self, steps: Sequence[tuple[int, int]], relative: bool) -> str | None:
        """Return why the mask may change, or distant frames may see each other; None if both are disproved.

        steps     nodes from the product to the softmax, each with the input slot of the scores
        relative  whether only differences within a row must repeat, since a softmax sees nothing else
        """
        score, end = Pattern.constant(ZERO), ""
        for node_id, slot in steps:
            node = self._graph.nodes[node_id]
            end = node.name
            inputs = [
                score if index == slot else self.pattern(outlet) for index, outlet in enumerate(node.inputs)
            ]
            score = self._hide(self._apply(node, inputs))
        if not (score.is_steady or (relative and score.repeats and LENGTH not in score.slopes)):
            causes = [self._causes[node_id] for node_id, _ in steps if node_id in self._causes]
            return f"{causes[0] if causes else end} gives no proof"
        if any(bool(np.any(high > self._extent.masked)) for _, high in (score.below, score.above)):
            return f"after {end}, frames {self._extent.distance} or more apart may attend to each other"
        return None

    def _hide(self, score: Pattern) -> Pattern:
        """Set scores that count as masked to minus infinity, as a run does."""

        def hide(x: Interval) -> Interval:
            hidden = x[1] <= self._extent.masked
            return np.where(hidden, -np.inf, x[0]), np.where(hidden, -np.inf, x[1])

        return Pattern(
            score.slopes,
            hide(score.rest) if not score.slopes else score.rest,
            hide(score.bounds),
            hide(score.below),
            hide(score.above),
            score.repeats,
        )

    def pattern(self, outlet: OutletId) -> Pattern:
        """Return the pattern of a wire that depends on positions and lengths alone."""
        pending = [outlet]
        while pending:
            node = self._graph.node(pending[-1])
            table = self._table(pending[-1])
            waiting = (
                []
                if table is not None
                else [source for source in node.inputs if source not in self._patterns]
            )
            if waiting:
                pending += waiting
                continue
            pattern = table or self._apply(node, [self._patterns[source] for source in node.inputs])
            self._patterns[pending.pop()] = pattern
        return self._patterns[outlet]

    def _table(self, outlet: OutletId) -> Pattern | None:
        """Return the pattern of a constant, or of one sliced to the length of the stream."""
        node, cuts = self._graph.node(outlet), list[Slice]()
        while isinstance(node.op, Slice) and node.op.start.is_const and node.op.step == 1:
            cuts.append(node.op)
            node = self._graph.node(node.inputs[0])
        if not isinstance(node.op, Const):
            return None
        value = node.op.value
        if is_symbolic(value):
            return None if cuts else self._length(value)
        for cut in reversed(cuts):
            end = int(cut.end) if cut.end.is_const else None
            value = value[(slice(None),) * cut.axis + (slice(int(cut.start), end),)]
        if value.dtype.kind not in "iufb" or np.isnan(value).any():
            return Pattern.unknown()
        axes = self._graph.fact(outlet).symbolic_axes(self._symbol)
        return stored_pattern(value, axes, self._extent.period, self._extent.distance)

    def _length(self, value: Array) -> Pattern:
        """Return the pattern of a number that depends on the number of rows."""
        more = [TDim.of(element) - self._rows for element in value.ravel().tolist()]
        if len(more) != 1 or not more[0].is_const:
            return Pattern.unknown()
        rest = exact_numbers(np.array(int(more[0])))
        return affine({LENGTH: ONE}, (rest, rest), self._extent.distance)

    def _apply(self, node: Node[TypedFact, Op], inputs: Sequence[Pattern]) -> Pattern:
        op, facts = node.op, [self._graph.fact(source) for source in node.inputs]
        pattern = Pattern.unknown()
        if isinstance(op, Elementwise):
            truncated = self._truncated_argument(node)
            pattern = (
                elementwise(op.kind, inputs, node.outputs[0].fact, self._extent)
                if truncated is None
                else whole_part(self._patterns[truncated], self._extent)
            )
        elif isinstance(op, Range):
            first, step = (exact_numbers(np.array(bound)) for bound in (op.start, op.step))
            pattern = affine({-1: step}, (first, first), self._extent.distance)
        elif isinstance(op, Cast):
            pattern = self._cast(op, inputs[0], facts[0])
        elif isinstance(op, Expand | RangeCheck):
            pattern = inputs[0]
        elif isinstance(op, Slice) and op.start.is_const and op.step == 1:
            start = int(op.start)
            (x,) = inputs
            axis = op.axis - facts[0].rank
            slope = x.slopes.get(axis, ZERO)
            pattern = combination([x, Pattern.constant(slope * start)], (1, 1), self._extent.distance)
            if not self._streams(node.outputs[0].fact, axis) and axis in x.slopes:
                pattern = self._first_entry(pattern, axis, node.outputs[0].fact)
        elif op.keeps_order or isinstance(op, Transpose):
            pattern = self._move(op, inputs[0], facts[0], node.outputs[0].fact)
        elif isinstance(op, Gather):
            pattern = _look_up(op, inputs, facts)
        elif isinstance(op, Concat):
            pattern = self._join(inputs, facts, op.axis - facts[0].rank)
        elif isinstance(op, CumSum) and not op.reverse and inputs[0].number is not None:
            number = inputs[0].number
            first = ZERO * number if op.exclusive else number
            pattern = affine({op.axis - facts[0].rank: number}, (first, first), self._extent.distance)
        if LENGTH in pattern.slopes and not self._fits(node.outputs[0].fact):
            pattern = Pattern.unknown()
        if not pattern.repeats and pattern.parts is None:
            causes = [self._causes[source.node] for source in node.inputs if source.node in self._causes]
            self._causes[node.id] = causes[0] if causes else f"{node.name} ({op.name})"
        return pattern

    def _fits(self, fact: TypedFact) -> bool:
        """Return whether there are no more positions than rows."""
        return all(fact.shape[axis].prove_le(self._rows).yes for axis in fact.symbolic_axes(self._symbol))

    def _streams(self, fact: TypedFact, axis: int) -> bool:
        return self._symbol in fact.shape[axis].symbols and not self._is_one(fact.shape[axis])

    def _is_one(self, dim: TDim) -> bool:
        """Return whether it is 1 in every stream that has a frame."""
        return dim.subs({self._symbol: TDim.of(self._symbol) + 1}).prove_eq(TDim.of(1)).yes

    def _first_entry(self, x: Pattern, axis: int, fact: TypedFact) -> Pattern:
        """Return the first entry of a value that grows along an axis; several entries are unknown."""
        if not self._is_one(fact.shape[axis]):
            return Pattern.unknown()
        slopes = {other: slope for other, slope in x.slopes.items() if other != axis}
        return affine(slopes, x.rest, self._extent.distance, x.repeats)

    def _join(self, inputs: Sequence[Pattern], facts: Sequence[TypedFact], axis: int) -> Pattern:
        """Join one entry with numbers that continue it in equal steps, or join equal values."""
        numbers = [operand.number for operand in inputs]
        if all(number is not None and np.all(number == numbers[0]) for number in numbers):
            return inputs[0]
        if len(inputs) != 2 or not self._is_one(facts[0].shape[axis]) or set(inputs[1].slopes) != {axis}:
            return Pattern.unknown()
        (first, stream), slope = inputs, inputs[1].slopes[axis]
        low, high = stream.rest
        if first.number is None or np.any(low != high) or np.any(first.number != low - slope):
            return Pattern.unknown()
        rest = low - slope
        return affine({axis: slope}, (rest, rest), self._extent.distance, stream.repeats)

    def _cast(self, op: Cast, x: Pattern, fact: TypedFact) -> Pattern:
        if op.dtype == np.bool_:
            return x if fact.dtype == np.bool_ else function(is_true, [x])
        if np.issubdtype(op.dtype, np.floating) or not np.issubdtype(fact.dtype, np.floating):
            return x
        return whole_part(x, self._extent)

    def _truncated_argument(self, node: Node[TypedFact, Op]) -> OutletId | None:
        """Return the x of ``sign(x) * floor(abs(x))``, which PyTorch writes for a quotient rounded toward zero."""

        def argument(outlet: OutletId, function: str) -> OutletId | None:
            producer = self._graph.node(outlet)
            if isinstance(producer.op, Elementwise) and producer.op.kind == function:
                return producer.inputs[0]
            return None

        if not isinstance(node.op, Elementwise) or node.op.kind != "mul":
            return None
        for sign, size in (node.inputs, node.inputs[::-1]):
            x, floor_argument = argument(sign, "sign"), argument(size, "floor")
            if (
                x is not None
                and floor_argument is not None
                and argument(floor_argument, "abs") == x
                and x in self._patterns
            ):
                return x
        return None

    def _move(self, op: Op, x: Pattern, before: TypedFact, after: TypedFact) -> Pattern:
        """Add, drop or regroup axes of constant size; transpose axes."""
        if x.parts is not None:
            combination, parts = x.parts
            return extreme(combination, [self._move(op, part, before, after) for part in parts])
        streams = [axis - before.rank for axis in before.symbolic_axes(self._symbol)]
        sizes = [1 if axis - before.rank in streams else int(dim) for axis, dim in enumerate(before.shape)]
        if isinstance(op, Transpose):
            new_axis_of = {old - before.rank: new - before.rank for new, old in enumerate(op.perm)}
            new_axes = [new_axis_of[axis] for axis in streams]
            pattern = _map(x, lambda value: np.transpose(np.broadcast_to(value, sizes), op.perm), new_axis_of)
            if new_axes == sorted(new_axes):
                return pattern
            return replace(pattern, below=pattern.above, above=pattern.below)
        targets = [axis - after.rank for axis in after.symbolic_axes(self._symbol)]
        same = len(streams) == len(targets) and all(
            before.shape[a].prove_eq(after.shape[b]).yes for a, b in zip(streams, targets)
        )
        if not same or not _keeps_order(before, after, streams, targets):
            return Pattern.unknown(x.bounds if np.ndim(x.bounds[0]) == 0 else ANYTHING)
        shape = [1 if axis - after.rank in targets else int(dim) for axis, dim in enumerate(after.shape)]

        def regroup(value: Exact) -> Exact:
            return value if np.ndim(value) == 0 else np.broadcast_to(value, sizes).reshape(shape)

        return _map(x, regroup, dict(zip(streams, targets)))


def _look_up(op: Gather, inputs: Sequence[Pattern], facts: Sequence[TypedFact]) -> Pattern:
    """Look up entries of a stored table by an index that repeats."""
    table, index = facts[0].value, inputs[1]
    if table is None or table.dtype.kind not in "iufb" or op.axis or not index.is_steady:
        return Pattern.unknown()

    def entries(x: Interval) -> Interval:
        low, high = (
            float(np.clip(float(pick(np.asarray(bounds, np.float64))), -len(table), len(table) - 1))
            for pick, bounds in ((np.min, x[0]), (np.max, x[1]))
        )
        rows = table if low < 0 else table[int(np.floor(low)) : int(np.ceil(high)) + 1]
        return exact_numbers(rows.min(axis=0)), exact_numbers(rows.max(axis=0))

    return function(entries, [index])


def _map(x: Pattern, change: Callable[[Exact], Exact], new_axis_of: dict[int, int]) -> Pattern:
    def apply_to_ends(interval: Interval) -> Interval:
        return change(interval[0]), change(interval[1])

    slopes = {new_axis_of.get(axis, axis): change(slope) for axis, slope in x.slopes.items()}
    return Pattern(
        slopes,
        apply_to_ends(x.rest),
        apply_to_ends(x.bounds),
        apply_to_ends(x.below),
        apply_to_ends(x.above),
        x.repeats,
    )


def _keeps_order(before: TypedFact, after: TypedFact, old: Sequence[int], new: Sequence[int]) -> bool:
    """Return whether the constant axes between the stream axes keep their number of elements."""

    def volumes(fact: TypedFact, streams: Sequence[int]) -> list[int]:
        volumes_so_far = [1]
        for axis, dim in enumerate(fact.shape):
            if axis - fact.rank in streams:
                volumes_so_far.append(1)
            else:
                volumes_so_far[-1] *= int(dim)
        return volumes_so_far

    return volumes(before, old) == volumes(after, new)
