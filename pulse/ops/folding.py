"""Computing before running what is known before running, within the budget of the file."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from pulse.budget import Spending, spending
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.ops.op import Op, known_inputs, symbolic_eval

SMALL = 1 << 12
"""Elements that take a call of numpy, whatever is done with them."""
SYMBOLIC_ELEMENTS, SYMBOLIC_S = 64, 1e-4
"""What a dim in a tensor of dims takes: the memory of so many numbers, and so long."""


class TooLongError(Exception):
    """A constant takes longer to compute than the budget allows."""


@dataclass
class _Fold:
    """An op while it is computed before running: how long it takes."""

    account: Spending
    seconds: float

    def take(self, seconds: float) -> None:
        """Count more. Raises TooLongError."""
        self.seconds += seconds
        if self.account.slowness(self.seconds):
            raise TooLongError


_folds: ContextVar[_Fold | None] = ContextVar("fold", default=None)


def folded(
    name: str, op: Op, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]
) -> list[Array] | None:
    """The outputs where all that the op reads is known and the budget allows it, else None.

    Raises FactError, DimError as ``symbolic_eval``.
    """
    if not known_inputs(op, inputs) or not all(dim.is_const for fact in outputs for dim in fact.shape):
        return None
    account = spending()
    symbolic = any(fact.value is not None and is_symbolic(fact.value) for fact in inputs)
    total = sum(_elements(fact) for fact in outputs)
    counted = total * SYMBOLIC_ELEMENTS if symbolic else total
    seconds = _seconds(op, inputs, outputs, total, symbolic)
    reason = account.excess(counted) or account.slowness(seconds)
    values = None
    if not reason:
        fold = _Fold(account, seconds)
        token = _folds.set(fold)
        try:
            values = symbolic_eval(op, inputs)
        except TooLongError:
            reason = account.slowness(fold.seconds)
        finally:
            _folds.reset(token)
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
    from pulse.costs.seconds import CALL_S, op_seconds

    if symbolic:
        return CALL_S + SYMBOLIC_S * elements
    if not op.iterates and elements + sum(_elements(fact) for fact in inputs) <= SMALL:
        return CALL_S
    return op_seconds(op, inputs, outputs, int)


def turn_counter(op: Op, inputs: Sequence[Array]) -> Callable[[], None]:
    """What a loop of an unknown number of turns calls before each turn; it raises TooLongError while folding."""
    fold = _folds.get()
    if fold is None:
        return lambda: None
    from pulse.costs.seconds import op_seconds

    facts = [TypedFact.of(array) for array in inputs]
    each = op_seconds(op, facts, op.facts(facts), lambda dim: int(dim) if dim.is_const else 1)
    return lambda: fold.take(each)
