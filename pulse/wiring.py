"""Add nodes to a typed graph: their ops derive the facts, and constants are computed within the budget of the file."""

from collections.abc import Callable, Sequence

from pulse.errors import DimError, FactError
from pulse.facts import MOST_AXES, Array, TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.ops.control_iterations import counting_iterations
from pulse.ops.elementwise import Cast
from pulse.ops.op import Op, known_inputs, symbolic_eval
from pulse.ops.source import Const
from pulse.ops.work import CALL_S
from pulse.support.budget import Spending, current_spending
from pulse.support.record import record
from pulse.typed import TypedGraph
from pulse.wiring_sizes import integer_sizes

SMALL = 1 << 12
"""The number of elements that are computed in about the time of one call of numpy."""
SYMBOLIC_ELEMENTS, SYMBOLIC_S = 64, 1e-4
"""The cost of a dim in a tensor of dims, in numbers of equal memory and time."""


def wire(graph: TypedGraph, name: str, op: Op, inputs: Sequence[OutletId]) -> list[OutletId]:
    """Add a node whose facts the op derives, or a constant if all its inputs are known.

    Raises FactError, naming the node and its inputs.
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
    if values is None and isinstance(op, Cast) and op.dtype.kind in "iu":
        sizes = integer_sizes(graph, inputs[0])
        values = None if sizes is None else [sizes if is_symbolic(sizes) else sizes.astype(op.dtype)]
    if values is None:
        return graph.add(name, op, inputs, outputs)
    return [
        graph.add(name if slot == 0 else f"{name}:{slot}", Const(value), (), [TypedFact.of(value)])[0]
        for slot, value in enumerate(values)
    ]


def _require_possible(facts: Sequence[TypedFact]) -> None:
    for fact in facts:
        if fact.rank > MOST_AXES:
            raise FactError(f"a tensor of {fact.rank} axes; at most {MOST_AXES} are covered")
        if any(dim.const < 0 and not dim.terms for dim in fact.shape):
            raise FactError(f"its output would be {fact}: its inputs are too short")


class TooLongError(Exception):
    """A constant takes longer to compute than the budget allows."""


@record(frozen=False)
class _Fold:
    """An op while it is computed before running: how long it takes."""

    account: Spending
    seconds: float

    def take(self, seconds: float) -> None:
        """Count more. Raises TooLongError."""
        self.seconds += seconds
        if self.account.slowness(self.seconds):
            raise TooLongError

    def iterations(self, op: Op, inputs: Sequence[Array]) -> Callable[[], None]:
        """What counts each iteration of a loop, at any depth."""
        facts = [TypedFact.of(array) for array in inputs]
        each = op.eval_seconds(facts, op.facts(facts), lambda dim: int(dim) if dim.is_const else 1)
        return lambda: self.take(each)


def _fold(name: str, op: Op, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> list[Array] | None:
    """The outputs if all inputs are known and the budget allows it, otherwise None.

    Raises FactError, DimError as ``symbolic_eval``.
    """
    if not known_inputs(op, inputs) or not all(dim.is_const for fact in outputs for dim in fact.shape):
        return None
    account = current_spending()
    symbolic = any(fact.value is not None and is_symbolic(fact.value) for fact in inputs)
    total = sum(_elements(fact) for fact in outputs)
    counted = total * SYMBOLIC_ELEMENTS if symbolic else total
    seconds = _seconds(op, inputs, outputs, total, symbolic)
    reason = account.excess(counted) or account.slowness(seconds)
    values = None
    if not reason:
        fold = _Fold(account, seconds)
        token = counting_iterations.set(fold.iterations)
        try:
            values = symbolic_eval(op, inputs)
        except TooLongError:
            reason = account.slowness(fold.seconds)
        finally:
            counting_iterations.reset(token)
        account.seconds = min(account.seconds + fold.seconds, account.budget.seconds)
    if reason:
        account.unfolded.setdefault(name, f"{name} ({op.name}) is not computed before running: {reason}")
        return None
    account.elements += counted
    return values


def _elements(fact: TypedFact) -> int:
    """How many there are, of a constant shape."""
    count = 1
    for dim in fact.shape:
        count *= int(dim)
    return count


def _seconds(
    op: Op, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], elements: int, symbolic: bool
) -> float:
    if symbolic:
        return CALL_S + SYMBOLIC_S * elements
    if not op.iterates and elements + sum(_elements(fact) for fact in inputs) <= SMALL:
        return CALL_S
    return op.eval_seconds(inputs, outputs, int)
