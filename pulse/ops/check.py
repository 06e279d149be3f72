"""Values for which an operation has no result: found by the oracle, counted by a stream.

numpy and onnxruntime raise at such a value, or return whatever the processor does: an index outside its table,
an integer divided by 0, a float that becomes an integer which cannot hold it. An op lists them in ``Op.checks``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import field
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pulse.errors import Fault
from pulse.facts import Array, DType, dtype_name
from pulse.support.record import record

ResultT = TypeVar("ResultT")


@record
class Check:
    """The values of one operand that an op has a result for.

    slot     slot of the operand
    low      the smallest of them; a float is rounded towards zero before
    high     the largest of them
    column   the only position of the last axis that is checked; None: the whole operand
    nonzero  whether all values but 0 are allowed; ``low`` and ``high`` are ignored
    kind     the type that must hold the operand, for messages
    """

    slot: int
    low: int = 0
    high: int = 0
    column: int | None = None
    nonzero: bool = False
    kind: str = ""

    def part(self, operand: Array) -> Array:
        """Return the part of the operand that is checked, a view."""
        return operand if self.column is None else operand[..., self.column]

    def bounds(self) -> tuple[float, float]:
        """Return the floats between which, both excluded, a float is one of the values."""
        above = float(self.low) - 1.0
        if above >= self.low:
            above = np.nextafter(float(self.low), -np.inf)
        return float(above), float(self.high + 1)

    def find_failing(self, operand: Array) -> NDArray[np.bool_]:
        """Return which elements of ``part`` have no result."""
        part = self.part(operand)
        if self.nonzero:
            return np.asarray(part == 0)
        if np.issubdtype(part.dtype, np.floating):
            wide = part.astype(np.float64)
            above, below = self.bounds()
            return np.asarray(~((wide > above) & (wide < below)))
        return np.asarray((part < self.low) | (part > self.high))

    def fault(self, node: str, op: str, count: int) -> Fault:
        """Return the fault that reports a number of elements."""
        values = f"{count:,} value{'' if count == 1 else 's'} of input {self.slot}"
        if self.nonzero:
            reason = f"{values}: integers cannot be divided by 0"
        elif self.kind:
            reason = f"{values}: NaN, infinite, or more than {self.kind} holds"
        else:
            reason = f"{values} outside {self.low} … {self.high}"
        return Fault(node, op, reason, count)


Site: TypeAlias = tuple[str, str, Check]
"""The site of a check: the label of a node, its op, and the check."""


def index_check(size: int, column: int | None = None) -> Check:
    """Return the check of the second input as indices of an axis; negative indices count from the end."""
    return Check(1, -size, size - 1, column)


def conversion_check(dtype: DType) -> Check:
    """Return the check of the first input as floats that become integers."""
    info = np.iinfo(dtype)
    return Check(0, int(info.min), int(info.max), kind=dtype_name(dtype))


def replace_failing(check: Check, operand: Array, failing: NDArray[np.bool_]) -> Array:
    """Copy an operand with a value for each one that has no result: the nearest index, the divisor 1 or the float 0."""
    fixed = operand.copy()
    part = check.part(fixed)
    if check.nonzero or check.kind:
        part[failing] = int(check.nonzero)
    else:
        part[failing] = np.clip(part[failing], check.low, check.high)
    return fixed


@record(frozen=False)
class Tally:
    """Faults that are counted instead of raised.

    counts  the counts, by the labels of the nodes around it and its own, its op, and what was checked
    path    the labels of the nodes whose bodies are running
    """

    counts: Counter[Site] = field(default_factory=Counter[Site])
    path: list[str] = field(default_factory=list[str])

    def add(self, node: str, op: str, check: Check, count: int) -> None:
        self.counts["/".join([*self.path, node]), op, check] += count


_tally: ContextVar[Tally | None] = ContextVar("tally", default=None)


def tally_in_use() -> Tally | None:
    """Return the tally that counts faults; None if they are raised."""
    return _tally.get()


def count_faults(tally: Tally, compute: Callable[[], ResultT]) -> ResultT:
    """Compute while the tally counts the faults, in a separate context, which is left even after an interrupt."""
    return copy_context().run(_with_tally, tally, compute)


def _with_tally(tally: Tally, compute: Callable[[], ResultT]) -> ResultT:
    _tally.set(tally)
    return compute()


def replace_all_failing(
    checks: Sequence[Check], inputs: Sequence[Array]
) -> tuple[Sequence[Array], list[tuple[Check, int]]]:
    """Replace all values that have no result; return the inputs and how many were replaced."""
    fixed, failures = list(inputs), list[tuple[Check, int]]()
    for check in checks:
        failing = check.find_failing(inputs[check.slot])
        count = int(np.count_nonzero(failing))
        if count:
            failures.append((check, count))
            fixed[check.slot] = replace_failing(check, fixed[check.slot], failing)
    return fixed, failures
