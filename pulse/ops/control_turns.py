"""What a loop of an unknown number of turns tells while it is computed before running: each turn."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeAlias

from pulse.facts import Array
from pulse.ops.op import Op

Counting: TypeAlias = Callable[[Op, Sequence[Array]], Callable[[], None]]
"""For a loop and its inputs, what is to be called before each turn; that raises where it takes too long."""

counting_turns: ContextVar[Counting | None] = ContextVar("counting_turns", default=None)
"""Set while an op is computed before running; see ``pulse.wiring``."""


def turn_counter(op: Op, inputs: Sequence[Array]) -> Callable[[], None]:
    """What a loop of an unknown number of turns calls before each turn."""
    counting = counting_turns.get()
    return (lambda: None) if counting is None else counting(op, inputs)
