"""Proof that a mask keeps its pattern, for streams of any length: what its nodes compute, position by position."""

from collections.abc import Callable, Sequence

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.graph import Node, OutletId
from pulse.ops.concat import Concat
from pulse.ops.cumulative import CumSum
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_within import Within
from pulse.ops.gather import Gather
from pulse.ops.op import Op
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.ops.source import Const
from pulse.ops.time_position import Range
from pulse.pulsify.pattern import (
    ANYTHING,
    LENGTH,
    NEVER,
    ONE,
    ZERO,
    Bounds,
    Exact,
    Interval,
    Pattern,
    affine,
    below,
    choose,
    combination,
    exact,
    extreme,
    function,
    invert,
    is_true,
    is_zero,
    least,
    magnitude,
    most,
    multiply,
    not_above,
    round_down,
    scale,
    union,
)
from pulse.pulsify.pattern_table import stored
from pulse.record import record
from pulse.typed import TypedGraph

COMPARISONS: dict[str, tuple[Bounds, bool]] = {
    "less": (below, False),
    "less_equal": (not_above, False),
    "greater": (below, True),
    "greater_equal": (not_above, True),
    "equal": (is_zero, False),
}
"""What is asked of the difference of the operands, and whether it is that of the second and the first."""
BOUNDS: dict[str, Bounds] = {
    "abs": magnitude,
    "mul": multiply,
    "and": least,
    "or": most,
    "not": invert,
    "where": choose,
}
ANY_OF = {("max", "less"), ("max", "less_equal"), ("min", "greater"), ("min", "greater_equal")}
"""An operand is below a maximum if it is below any of its parts; above one if it is above all of them."""
MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


@record
class Extent:
    """What a run has shown of a mask.

    period    after how many frames it repeats
    distance  frames that are so far apart, or farther, are together in no run
    masked    a score from here down is masked
    """

    period: int
    distance: int
    masked: float


class MaskProof:
    """What each wire is that depends on positions alone; ``rows`` are the frames of queries, and of keys."""

    def __init__(self, graph: TypedGraph, symbol: Symbol, rows: TDim, extent: Extent) -> None:
        self._graph, self._symbol, self._rows, self._extent = graph, symbol, rows, extent
        self._known: dict[OutletId, Pattern] = {}
        self._causes: dict[int, str] = {}

    def doubt(self, steps: Sequence[tuple[int, int]], relative: bool) -> str | None:
        """Why the mask may change, or frames that are far apart may meet; None if it is proved that they do not.

        steps     nodes from the product to the softmax, and which of their inputs is the score
        relative  whether only differences within a row have to repeat, which is all that a softmax sees
        """
        score, end = Pattern.constant(ZERO), ""
        for number, slot in steps:
            node = self._graph.nodes[number]
            end = node.name
            inputs = [
                score if place == slot else self.pattern(outlet) for place, outlet in enumerate(node.inputs)
            ]
            score = self._masked(self._apply(node, inputs))
        if not (score.is_steady or (relative and score.repeats and LENGTH not in score.slopes)):
            causes = [self._causes[number] for number, _ in steps if number in self._causes]
            return f"{causes[0] if causes else end} gives no proof"
        if any(bool(np.any(high > self._extent.masked)) for _, high in (score.behind, score.ahead)):
            return f"frames that are {self._extent.distance} or more apart may meet, by {end}"
        return None

    def _masked(self, score: Pattern) -> Pattern:
        """Scores that count as masked are minus infinity, as in a run."""

        def lowered(x: Interval) -> Interval:
            hidden = x[1] <= self._extent.masked
            return np.where(hidden, -np.inf, x[0]), np.where(hidden, -np.inf, x[1])

        return Pattern(
            score.slopes,
            lowered(score.rest) if not score.slopes else score.rest,
            lowered(score.near),
            lowered(score.behind),
            lowered(score.ahead),
            score.repeats,
        )

    def pattern(self, outlet: OutletId) -> Pattern:
        """What a wire is that depends on positions and lengths alone."""
        pending = [outlet]
        while pending:
            node = self._graph.node(pending[-1])
            stored = self._table(pending[-1])
            waiting = [] if stored is not None else [read for read in node.inputs if read not in self._known]
            if waiting:
                pending += waiting
                continue
            made = stored or self._apply(node, [self._known[read] for read in node.inputs])
            self._known[pending.pop()] = made
        return self._known[outlet]

    def _table(self, outlet: OutletId) -> Pattern | None:
        """A constant, or one that is cut to the length of the stream."""
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
        return stored(value, axes, self._extent.period, self._extent.distance)

    def _length(self, value: Array) -> Pattern:
        """A number that depends on how many rows there are."""
        more = [TDim.of(each) - self._rows for each in value.ravel().tolist()]
        if len(more) != 1 or not more[0].is_const:
            return Pattern.unknown()
        rest = exact(np.array(int(more[0])))
        return affine({LENGTH: ONE}, (rest, rest), self._extent.distance)

    def _apply(self, node: Node[TypedFact, Op], inputs: Sequence[Pattern]) -> Pattern:
        op, facts = node.op, [self._graph.fact(read) for read in node.inputs]
        made = Pattern.unknown()
        if isinstance(op, Elementwise):
            truncated = self._truncated(node)
            made = (
                self._elementwise(op.kind, inputs, node.outputs[0].fact)
                if truncated is None
                else self._whole_part(self._known[truncated])
            )
        elif isinstance(op, Range):
            first, step = (exact(np.array(each)) for each in (op.start, op.step))
            made = affine({-1: step}, (first, first), self._extent.distance)
        elif isinstance(op, Cast):
            made = self._cast(op, inputs[0], facts[0])
        elif isinstance(op, Expand | Within):
            made = inputs[0]
        elif isinstance(op, Slice) and op.start.is_const and op.step == 1:
            start = int(op.start)
            (x,) = inputs
            axis = op.axis - facts[0].rank
            slope = x.slopes.get(axis, ZERO)
            made = combination([x, Pattern.constant(slope * start)], (1, 1), self._extent.distance)
            if not self._streams(node.outputs[0].fact, axis) and axis in x.slopes:
                made = self._first(made, axis, node.outputs[0].fact)
        elif isinstance(op, Reshape | AddAxis | RemoveAxis | Transpose):
            made = self._move(op, inputs[0], facts[0], node.outputs[0].fact)
        elif isinstance(op, Gather):
            made = self._look_up(op, inputs, facts)
        elif isinstance(op, Concat):
            made = self._join(inputs, facts, op.axis - facts[0].rank)
        elif isinstance(op, CumSum) and not op.reverse and inputs[0].number is not None:
            each = inputs[0].number
            first = ZERO * each if op.exclusive else each
            made = affine({op.axis - facts[0].rank: each}, (first, first), self._extent.distance)
        if LENGTH in made.slopes and not self._fits(node.outputs[0].fact):
            made = Pattern.unknown()
        if not made.repeats and made.parts is None:
            causes = [self._causes[read.node] for read in node.inputs if read.node in self._causes]
            self._causes[node.id] = causes[0] if causes else f"{node.name} ({op.name})"
        return made

    def _elementwise(self, kind: str, inputs: Sequence[Pattern], fact: TypedFact) -> Pattern:
        distance, period = self._extent.distance, self._extent.period
        if kind in ("add", "sum", "sub", "neg"):
            signs = {"sub": (1, -1), "neg": (-1,)}.get(kind, (1,) * len(inputs))
            return combination(inputs, signs, distance)
        if kind in COMPARISONS:
            return self._compare(kind, inputs)
        if kind in ("max", "min"):
            return extreme(kind, inputs)
        if kind == "where":
            return self._where(inputs)
        if kind == "relu":
            return extreme("max", [inputs[0], Pattern.constant(ZERO)])
        if kind == "floor":
            return round_down(inputs[0], period, distance)
        if kind == "ceil":
            negative = round_down(combination(inputs, (-1,), distance), period, distance)
            return combination([negative], (-1,), distance)
        if kind in ("mul", "div", "mod"):
            found = self._by_number(kind, inputs, fact)
            if found is not None:
                return found
        if kind == "abs" and np.all(np.asarray(inputs[0].near[0] >= 0)):
            return inputs[0]
        known = BOUNDS.get(kind)
        truth = ZERO, ONE
        return function(
            known or (lambda *_: truth if fact.dtype == np.bool_ else ANYTHING),
            inputs,
        )

    def _by_number(self, kind: str, inputs: Sequence[Pattern], fact: TypedFact) -> Pattern | None:
        """Of a value and a number: its product, its quotient, its remainder."""
        x, number = inputs[0], inputs[1].number
        if kind == "mul" and number is None:
            x, number = inputs[1], inputs[0].number
        if number is None or _is_infinite(number):
            return None
        distance, period = self._extent.distance, self._extent.period
        if kind == "mul":
            return scale(x, number, distance)
        if np.any(np.asarray(number <= 0)):
            return None
        quotient = scale(x, ONE / number, distance)
        whole = np.issubdtype(fact.dtype, np.integer)
        if kind == "div":
            if not whole:
                return quotient
            return self._whole_part(quotient)
        floor = round_down(quotient, period, distance)
        rest = combination([x, scale(floor, number, distance)], (1, -1), distance)
        low, high = ZERO * number, number - ONE if whole else number
        bounds = low, high
        return Pattern(rest.slopes, bounds, bounds, bounds, bounds, rest.repeats) if rest.is_steady else None

    def _whole_part(self, x: Pattern) -> Pattern:
        """Rounded toward zero."""
        if np.all(np.asarray(x.near[0] >= 0)):
            return round_down(x, self._extent.period, self._extent.distance)

        def whole(each: Interval) -> Interval:
            return each[0] - ONE, each[1] + ONE

        return function(whole, [x])

    def _compare(self, kind: str, inputs: Sequence[Pattern]) -> Pattern:
        for place, each in enumerate(inputs):
            if each.parts is not None and kind in MIRRORED:
                own = kind if place else MIRRORED[kind]
                extremum, parts = each.parts
                found = [self._compare(own, [inputs[1 - place], part]) for part in parts]
                return function(most if (extremum, own) in ANY_OF else least, found)
        bounds, swapped = COMPARISONS[kind]
        signs = (-1, 1) if swapped else (1, -1)
        return _settle(function(bounds, [combination(inputs, signs, self._extent.distance)]))

    def _where(self, inputs: Sequence[Pattern]) -> Pattern:
        """Of two values that grow alike, or one of which is masked."""
        condition, x, y = inputs
        for known, chosen in ((condition.near[0] == 1, x), (condition.near[1] == 0, y)):
            if np.all(known):
                return chosen
        made = function(choose, inputs)
        if made.repeats or not condition.is_steady or not (x.repeats and y.repeats):
            return made
        for one, other in ((x, y), (y, x)):
            hidden = other.number is not None and np.all(np.asarray(other.near[1] <= self._extent.masked))
            if hidden or _alike(one, other):
                rest = union(one.rest, NEVER if hidden else other.rest)
                return Pattern(one.slopes, rest, made.near, made.behind, made.ahead)
        return made

    def _fits(self, fact: TypedFact) -> bool:
        """Whether there are no more positions than rows."""
        return all(fact.shape[axis].prove_le(self._rows).yes for axis in fact.symbolic_axes(self._symbol))

    def _streams(self, fact: TypedFact, axis: int) -> bool:
        return self._symbol in fact.shape[axis].symbols

    def _first(self, x: Pattern, axis: int, fact: TypedFact) -> Pattern:
        """Of a value that grows along an axis its first entries, of which nothing is known but where there is one."""
        if fact.shape[axis] != TDim.of(1):
            return Pattern.unknown()
        slopes = {other: slope for other, slope in x.slopes.items() if other != axis}
        return affine(slopes, x.rest, self._extent.distance, x.repeats)

    def _join(self, inputs: Sequence[Pattern], facts: Sequence[TypedFact], axis: int) -> Pattern:
        """One entry before a stream of numbers that goes on from there in even steps; or values that are all alike."""
        numbers = [each.number for each in inputs]
        if all(number is not None and np.all(number == numbers[0]) for number in numbers):
            return inputs[0]
        if len(inputs) != 2 or facts[0].shape[axis] != TDim.of(1) or set(inputs[1].slopes) != {axis}:
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
        return self._whole_part(x)

    def _truncated(self, node: Node[TypedFact, Op]) -> OutletId | None:
        """The x of ``sign(x) * floor(abs(x))``, as PyTorch writes a quotient that is rounded toward zero."""

        def argument(outlet: OutletId, kind: str) -> OutletId | None:
            made = self._graph.node(outlet)
            return made.inputs[0] if isinstance(made.op, Elementwise) and made.op.kind == kind else None

        if not isinstance(node.op, Elementwise) or node.op.kind != "mul":
            return None
        for sign, size in (node.inputs, node.inputs[::-1]):
            x, whole = argument(sign, "sign"), argument(size, "floor")
            if x is not None and whole is not None and argument(whole, "abs") == x and x in self._known:
                return x
        return None

    def _move(self, op: Op, x: Pattern, before: TypedFact, after: TypedFact) -> Pattern:
        """Axes of constant size that come, go or are grouped anew; axes that change places."""
        if x.parts is not None:
            kind, parts = x.parts
            return extreme(kind, [self._move(op, each, before, after) for each in parts])
        streams = [axis - before.rank for axis in before.symbolic_axes(self._symbol)]
        sizes = [1 if axis - before.rank in streams else int(dim) for axis, dim in enumerate(before.shape)]
        if isinstance(op, Transpose):
            places = {old - before.rank: new - before.rank for new, old in enumerate(op.perm)}
            moved = [places[axis] for axis in streams]
            made = _map(x, lambda value: np.transpose(np.broadcast_to(value, sizes), op.perm), places)
            swapped = moved != sorted(moved)
            return Pattern(
                made.slopes,
                made.rest,
                made.near,
                made.ahead if swapped else made.behind,
                made.behind if swapped else made.ahead,
                x.repeats,
            )
        targets = [axis - after.rank for axis in after.symbolic_axes(self._symbol)]
        same = len(streams) == len(targets) and all(
            before.shape[a].prove_eq(after.shape[b]).yes for a, b in zip(streams, targets)
        )
        if not same or not _keeps_order(before, after, streams, targets):
            return Pattern.unknown(x.near if np.ndim(x.near[0]) == 0 else ANYTHING)
        shape = [1 if axis - after.rank in targets else int(dim) for axis, dim in enumerate(after.shape)]

        def regroup(value: Exact) -> Exact:
            return value if np.ndim(value) == 0 else np.broadcast_to(value, sizes).reshape(shape)

        made = _map(x, regroup, dict(zip(streams, targets)))
        return Pattern(made.slopes, made.rest, made.near, made.behind, made.ahead, x.repeats)

    def _look_up(self, op: Gather, inputs: Sequence[Pattern], facts: Sequence[TypedFact]) -> Pattern:
        """Entries of a stored table, by an index that repeats."""
        table, index = facts[0].value, inputs[1]
        if table is None or table.dtype.kind not in "iufb" or op.axis or not index.is_steady:
            return Pattern.unknown()

        def entries(x: Interval) -> Interval:
            low, high = (
                float(np.clip(float(pick(np.asarray(each, np.float64))), -len(table), len(table) - 1))
                for pick, each in ((np.min, x[0]), (np.max, x[1]))
            )
            chosen = table if low < 0 else table[int(np.floor(low)) : int(np.ceil(high)) + 1]
            return exact(chosen.min(axis=0)), exact(chosen.max(axis=0))

        return function(entries, [index])


def _is_infinite(number: Exact) -> bool:
    return bool(np.isinf(np.asarray(number, np.float64)).any())


def _settle(found: Pattern) -> Pattern:
    """A truth value that is the same everywhere repeats, whatever it was made of."""
    return found if found.number is None else Pattern.constant(found.near[0])


def _alike(x: Pattern, y: Pattern) -> bool:
    return all(
        np.all(x.slopes.get(axis, ZERO) == y.slopes.get(axis, ZERO)) for axis in {*x.slopes, *y.slopes}
    )


def _map(x: Pattern, change: Callable[[Exact], Exact], places: dict[int, int]) -> Pattern:
    def both(each: Interval) -> Interval:
        return change(each[0]), change(each[1])

    slopes = {places.get(axis, axis): change(slope) for axis, slope in x.slopes.items()}
    return Pattern(slopes, both(x.rest), both(x.near), both(x.behind), both(x.ahead), x.repeats)


def _keeps_order(before: TypedFact, after: TypedFact, old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether the constant axes between those of the stream hold as many numbers as before."""

    def volumes(fact: TypedFact, streams: Sequence[int]) -> list[int]:
        found = [1]
        for axis, dim in enumerate(fact.shape):
            if axis - fact.rank in streams:
                found.append(1)
            else:
                found[-1] *= int(dim)
        return found

    return volumes(before, old) == volumes(after, new)
