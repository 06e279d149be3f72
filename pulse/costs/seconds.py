"""An estimate of numpy's time for an op: counted, not measured, so that it is always the same."""

from collections.abc import Callable, Sequence

from pulse.costs.work import op_work
from pulse.dim import TDim
from pulse.facts import TypedFact
from pulse.ops.attention import BandedAttention
from pulse.ops.control import Loop
from pulse.ops.op import Op
from pulse.ops.recurrent import Recurrent
from pulse.ops.scan import Scan
from pulse.ops.shape import volume
from pulse.typed import TypedGraph

CALL_S, MAC_S, ELEMENTWISE_S, ELEMENT_S = 2e-5, 3e-10, 5e-9, 2e-9
"""What numpy takes, about: for a call, a multiply-add, a function of an element, and to move one."""
RUN_S = 2e-5
"""What an iteration of a loop takes besides its nodes, about."""
CELL_CALLS = 6
"""Of numpy, for a frame of a recurrent layer."""
PAIR_STEPS = 40
"""What numpy does with each pair of frames in attention."""


def op_seconds(
    op: Op, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], size: Callable[[TDim], int]
) -> float:
    """The seconds of one core that ``eval`` takes; of one iteration, for a loop with an unknown number of them.

    size  the number that a dim stands for
    """
    if isinstance(op, Scan):
        return size(inputs[0].shape[op.scanned[0].axis]) * _body_seconds(op.body.graph, size)
    if isinstance(op, Loop):
        return size(op.iterations or TDim.of(1)) * _body_seconds(op.body.graph, size)
    work = op_work(op, inputs, outputs)
    elements = sum(size(volume(fact.shape)) for fact in outputs)
    if isinstance(op, BandedAttention):  # its oracle looks at all pairs of frames
        elements += PAIR_STEPS * size(volume(outputs[0].shape[:-1])) * size(inputs[1].shape[-2])
    calls = CELL_CALLS * size(inputs[0].shape[0]) if isinstance(op, Recurrent) else 1
    moved = CALL_S * calls + ELEMENT_S * elements
    return moved + MAC_S * size(work.macs) + ELEMENTWISE_S * size(work.elementwise)


def _body_seconds(graph: TypedGraph, size: Callable[[TDim], int]) -> float:
    """The seconds of one iteration."""
    return RUN_S + sum(
        op_seconds(node.op, graph.input_facts(node), [outlet.fact for outlet in node.outputs], size)
        for node in graph.nodes
        if node.outputs
    )
