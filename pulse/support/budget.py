"""Limits of the analysis of one file, and what it has used: nodes, elements and seconds, all of them counted.

A file is not trusted: a few bytes can describe a loop of 10^12 iterations, or constants that fill the memory. So the
limits hold for all of a file together. No time is measured: a file gives the same model on every machine.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, fields, replace
from typing import Any, cast

from pulse.errors import LoadError
from pulse.support.collector import fewer_collections
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.value_types import fits
from pulse.support.wording import spell

COMPUTED_PER_STORED = 4
"""Computed constants may have this many times the elements that the file stores, beyond the budget: weights are
transposed, cast and dequantised."""


@record
class Budget:
    """The limits of one file.

    nodes     nodes to which functions, branches and loops unfold
    elements  elements of computed constants, beyond four times the stored elements
    seconds   seconds of one core that computing them takes, about: counted, not measured
    """

    nodes: float = 1 << 16
    elements: float = 1 << 25
    seconds: float = 10.0

    @classmethod
    def of(cls, user_limits: Mapping[str, float] | None) -> "Budget":
        """Return the default limits, with the user's values where given.

        Raises LoadError: no such limit, or not a number of at least 0
        """
        names = [member.name for member in fields(cls)]
        values: Any = {} if user_limits is None else user_limits
        if not isinstance(values, Mapping):
            raise LoadError(
                f"budget must map limits to numbers, such as {{'nodes': 1000000}}, not {user_limits!r}"
            )
        limits = cast("Mapping[str, Any]", values)
        for name, limit in limits.items():
            require_name("limit", name, names, LoadError, spell("budget"))
            if not fits(limit, float) or not limit >= 0:
                example = spell("budget", {name: 10**6})
                raise LoadError(f"{spell('budget')}: {name} is {limit!r}; give a number, as in {example}")
        return replace(cls(), **limits)


@record(frozen=False)
class Spending:
    """The memory and the counted work that the analysis of a file has used so far.

    budget      the limits
    stored      elements that the file stores
    nodes       nodes to which functions, branches and loops unfolded
    elements    elements of computed constants
    seconds     seconds that computing them takes, about
    not_folded  nodes by name that could be computed before running but are not: why, and what would help
    """

    budget: Budget = field(default_factory=Budget)
    stored: int = 0
    nodes: int = 0
    elements: int = 0
    seconds: float = 0.0
    not_folded: dict[str, str] = field(default_factory=dict[str, str])

    def copy(self) -> "Spending":
        """Return a copy with the same amounts."""
        return replace(self, not_folded=dict(self.not_folded))

    def take_nodes(self, nodes: int, subject: str) -> None:
        """Take nodes that ``subject`` needs, which are copied into the model. Raises LoadError: beyond the budget."""
        if self.nodes + nodes > self.budget.nodes:
            raise LoadError(
                f"{subject}: the functions, loops and branches of the file unfold to more than {self.budget.nodes:.0f} "
                "nodes; export it with fewer iterations, or loops over frames as Scan, or raise the limit with "
                f"{spell('budget', {'nodes': suggest_limit(self.budget.nodes)})}"
            )
        self.nodes += nodes

    def explain_excess_elements(self, elements: float) -> str:
        """Return why constants of this many elements cannot be computed, and what would help; empty if they can."""
        elements_left = self.budget.elements + COMPUTED_PER_STORED * self.stored - self.elements
        if elements <= elements_left:
            return ""
        limits = {"elements": suggest_limit(self.budget.elements, elements)}
        return (
            f"{elements:.0f} elements, but the budget of {self.budget.elements:.0f} for constants that are computed "
            f"before running leaves {max(0.0, elements_left):.0f}; raise it with {spell('budget', limits)}"
        )

    def try_elements(self, elements: int) -> str:
        """Take elements that are to be computed; return why they cannot be, as ``explain_excess_elements``."""
        reason = self.explain_excess_elements(elements)
        if not reason:
            self.elements += elements
        return reason

    def explain_slowness(self, seconds: float) -> str:
        """Return why a computation of this many seconds is refused, and what would help; empty if it is not."""
        if self.seconds + seconds <= self.budget.seconds:
            return ""
        limits = {"seconds": suggest_limit(self.budget.seconds, seconds)}
        return (
            f"it takes about {seconds:.3g} seconds, but the budget of {self.budget.seconds:g} for constants that are "
            f"computed before running leaves {self.budget.seconds - self.seconds:.3g}; raise it with "
            f"{spell('budget', limits)}"
        )


def suggest_limit(limit: float, amount: float = 0) -> int:
    """Return a limit to propose: ten times as much, or more if more is needed."""
    return int(min(max(10 * limit, 2 * amount, 10), 1e18))


_spending: ContextVar[Spending | None] = ContextVar("spending", default=None)


def current_spending() -> Spending:
    """Return the spending of the running analysis; outside one, a new one with the usual limits."""
    return _spending.get() or Spending()


@contextmanager
def count_spending(before: Spending) -> Generator[Spending]:
    """Count what is taken inside the block, in addition to ``before``, which does not change.

    So a step that runs twice is counted once. If an analysis already counts with ``before``, as while it reads a body,
    the block counts there.
    """
    if _spending.get() is before:
        yield before
        return
    token = _spending.set(before.copy())
    try:
        with fewer_collections():
            yield current_spending()
    finally:
        _spending.reset(token)
