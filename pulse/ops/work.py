"""The work of ops: counts of their operations, and estimates of numpy's time for them.

A multiply-add is one term of a sum of products. An elementwise operation is one function of one element, such as an
addition or an exponential; constants that are counted by hand say which. Moving data costs neither.

Seconds are counted too, not measured, so that they are always the same.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pulse.dim import ZERO, TDim
from pulse.facts import TypedFact, volume
from pulse.support.record import record

if TYPE_CHECKING:
    from pulse.graph import Graph

CALL_S, MAC_S, ELEMENTWISE_S, ELEMENT_S = 2e-5, 3e-10, 5e-9, 2e-9
"""Approximate seconds of numpy for a call, a multiply-add, a function of an element, and moving an element."""
RUN_S = 2e-5
"""Approximate seconds of a loop's iteration without its nodes."""


@record
class Work:
    """Multiply-adds and elementwise operations; functions of the symbols."""

    macs: TDim = ZERO
    elementwise: TDim = ZERO

    def __add__(self, other: "Work") -> "Work":
        return Work(self.macs + other.macs, self.elementwise + other.elementwise)

    def times(self, count: TDim) -> "Work":
        """Return the work multiplied by a count."""
        return Work(self.macs * count, self.elementwise * count)

    @classmethod
    def of_each(cls, fact: TypedFact, steps: int = 1) -> "Work":
        """Return the work of ``steps`` elementwise operations for each element of a tensor."""
        return cls(elementwise=volume(fact.shape) * steps)


NO_WORK = Work()


def graph_work(graph: "Graph[Any, Any]") -> Work:
    """Return the work of all nodes that the outputs need, as far as it is known."""
    total = NO_WORK
    for node_id in graph.order():
        node = graph.nodes[node_id]
        outputs = [outlet.fact for outlet in node.outputs]
        total += node.op.work(graph.input_facts(node), outputs) or NO_WORK
    return total


def numpy_seconds(
    work: Work | None, outputs: Sequence[TypedFact], size: Callable[[TDim], int], calls: int = 1
) -> float:
    """Return the seconds of one core that numpy takes for some work, with outputs of such facts.

    size   the value of a dim
    calls  calls of numpy
    """
    operations = work or NO_WORK
    elements = sum(size(volume(fact.shape)) for fact in outputs)
    seconds = CALL_S * calls + ELEMENT_S * elements
    return seconds + MAC_S * size(operations.macs) + ELEMENTWISE_S * size(operations.elementwise)


def iteration_seconds(graph: "Graph[Any, Any]", size: Callable[[TDim], int]) -> float:
    """Return the seconds of one iteration of a loop whose body is the graph."""
    return RUN_S + sum(
        node.op.eval_seconds(graph.input_facts(node), [outlet.fact for outlet in node.outputs], size)
        for node in graph.nodes
        if node.outputs
    )
