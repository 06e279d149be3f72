"""Add nodes to a typed graph: ops derive the facts; constants, and sizes in floats, are computed within the budget."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from pulse.dim import Ratio
from pulse.errors import DimError, FactError
from pulse.facts import MAX_AXES, Array, TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.ops.control_iterations import counting_iterations
from pulse.ops.folding import known_inputs, numbers_if_constant, symbolic_eval
from pulse.ops.op import Op
from pulse.ops.source import Const
from pulse.ops.work import CALL_S
from pulse.support.budget import Spending, current_spending
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.typed import TypedGraph

SMALL_CONSTANT_ELEMENTS = 1 << 12
"""The number of elements that are computed in about the time of one call of numpy."""
SYMBOLIC_ELEMENTS, SYMBOLIC_S = 64, 1e-4
"""What a dim in a tensor of dims costs: the memory of this many numbers, and this many seconds."""
MAX_SIZE_ELEMENTS = 64
"""Maximum number of elements of a tensor of sizes in floats; a larger one is computed as any other tensor."""


def wire(graph: TypedGraph, name: str, op: Op, inputs: Sequence[OutletId]) -> list[OutletId]:
    """Add a node whose facts the op derives, or a constant if all its inputs are known.

    Raises FactError: the op refuses its inputs
    """
    facts = [graph.fact(outlet) for outlet in inputs]
    try:
        outputs = op.facts(facts)
        _require_possible(outputs)
        values = _fold(name, op, facts, outputs)
    except DimError:
        outputs, values = op.facts(facts), None
    except FactError as error:
        operands = "; ".join(f"{graph.label(outlet)}: {fact}" for outlet, fact in zip(inputs, facts))
        raise FactError(f"{name} ({op.name}): {error} [reads {operands}]") from error
    if values is None and op.truncates:
        sizes = integer_sizes(graph, inputs[0])
        values = None if sizes is None else [sizes if is_symbolic(sizes) else sizes.astype(outputs[0].dtype)]
    if values is None:
        return graph.add(name, op, inputs, outputs)
    return [
        graph.add(name if slot == 0 else f"{name}:{slot}", Const(value), (), [TypedFact.of(value)])[0]
        for slot, value in enumerate(values)
    ]


def _require_possible(facts: Sequence[TypedFact]) -> None:
    for fact in facts:
        if fact.rank > MAX_AXES:
            raise FactError(
                f"a tensor with {count_of(fact.rank, 'axis', 'axes')}; at most {MAX_AXES} are supported"
            )
        if any(dim.const < 0 and not dim.terms for dim in fact.shape):
            raise FactError(f"its output would be {fact}: its inputs are too short")


class TooLongError(Exception):
    """A constant takes longer to compute than the budget allows."""


@record(frozen=False)
class _Fold:
    """An op while it is computed before running: how long it takes."""

    spending: Spending
    seconds: float

    def take(self, seconds: float) -> None:
        """Count more seconds. Raises TooLongError: beyond the budget."""
        self.seconds += seconds
        if self.spending.explain_slowness(self.seconds):
            raise TooLongError

    def iterations(self, op: Op, inputs: Sequence[Array]) -> Callable[[], None]:
        """Return the function that counts each iteration of a loop, at any depth."""
        facts = [TypedFact.of(array) for array in inputs]
        seconds = op.eval_seconds(facts, op.facts(facts), lambda dim: int(dim) if dim.is_const else 1)
        return lambda: self.take(seconds)


def _fold(name: str, op: Op, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> list[Array] | None:
    """Return the outputs if all inputs are known and the budget allows it, otherwise None.

    Raises FactError, DimError as ``symbolic_eval``.
    """
    if not known_inputs(op, inputs) or not all(dim.is_const for fact in outputs for dim in fact.shape):
        return None
    spending = current_spending()
    symbolic = any(fact.value is not None and is_symbolic(fact.value) for fact in inputs)
    total = sum(_elements(fact) for fact in outputs)
    counted = total * SYMBOLIC_ELEMENTS if symbolic else total
    seconds = _seconds(op, inputs, outputs, total, symbolic)
    reason = spending.explain_excess_elements(counted) or spending.explain_slowness(seconds)
    values = None
    if not reason:
        fold = _Fold(spending, seconds)
        token = counting_iterations.set(fold.iterations)
        try:
            values = symbolic_eval(op, inputs)
        except TooLongError:
            reason = spending.explain_slowness(fold.seconds)
        finally:
            counting_iterations.reset(token)
        spending.seconds = min(spending.seconds + fold.seconds, spending.budget.seconds)
    if reason:
        spending.not_folded.setdefault(name, f"{name} ({op.name}) is not computed before running: {reason}")
        return None
    spending.elements += counted
    return values


def _elements(fact: TypedFact) -> int:
    """Return the number of elements of a fact of constant shape."""
    count = 1
    for dim in fact.shape:
        count *= int(dim)
    return count


def _seconds(
    op: Op, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], elements: int, symbolic: bool
) -> float:
    if symbolic:
        return CALL_S + SYMBOLIC_S * elements
    if not op.iterates and elements + sum(_elements(fact) for fact in inputs) <= SMALL_CONSTANT_ELEMENTS:
        return CALL_S
    return op.eval_seconds(inputs, outputs, int)


def integer_sizes(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """Return a float wire computed only from sizes as integers or dims, truncated towards 0.

    None if it is computed from anything else, or if floats may round it to another integer.
    """
    ratios = size_ratios(graph, outlet)
    try:
        return None if ratios is None else numbers_if_constant(_each(Ratio.truncate, ratios))
    except DimError:
        return None


def size_ratios(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """Return the elements of a wire as quotients of dims, if all of it is constant or computed of sizes, else None."""
    try:
        return _ratios(graph, outlet)
    except DimError:
        return None


def _ratios(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """Return the elements of a wire as quotients of dims. Raises DimError: floats may round them."""
    fact = graph.fact(outlet)
    if not _is_small(fact):
        return None
    if fact.value is not None:
        return _each(Ratio.of, fact.value)
    if fact.dtype.kind != "f":
        return None
    node = graph.node(outlet)
    inputs: list[Array] = []
    for source in node.inputs:
        ratios = _ratios(graph, source)
        if ratios is None:
            return None
        inputs.append(ratios)
    return node.op.on_ratios(inputs)


def _is_small(fact: TypedFact) -> bool:
    return (
        all(dim.is_const for dim in fact.shape) and prod(int(dim) for dim in fact.shape) <= MAX_SIZE_ELEMENTS
    )


def _each(function: Callable[[Any], Any], operand: Array) -> Array:
    return np.asarray(np.frompyfunc(function, 1, 1)(operand.astype(object)))
