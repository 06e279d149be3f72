"""Reports of each iteration of a loop with an unknown trip count, while it is computed before running."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeAlias

from pulse.facts import Array
from pulse.ops.op import Op

Counting: TypeAlias = Callable[[Op, Sequence[Array]], Callable[[], None]]
"""Takes a loop and its inputs; returns a function to call before each iteration, which raises if it takes too long."""

counting_iterations: ContextVar[Counting | None] = ContextVar("counting_iterations", default=None)
"""Set while an op is computed before running; see ``pulse.wiring``."""


def iteration_counter(op: Op, inputs: Sequence[Array]) -> Callable[[], None]:
    """Return the function that a loop with an unknown trip count calls before each iteration."""
    counting = counting_iterations.get()
    return (lambda: None) if counting is None else counting(op, inputs)
