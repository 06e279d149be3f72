"""When a layer runs, and what its state begins with."""

import numpy as np

from pulse.facts import Array
from pulse.ops.recurrent import RecurrentStream
from pulse.ops.stateful import FAR
from pulse.program.lowering import Lowering, PulsedNode
from pulse.program.memory import Value
from pulse.record import record


@record
class StateTiming:
    """When a layer runs: as a stream, or afresh with every pulse."""

    clock: Value
    end: Value
    offset: int
    reload: bool


def restart_each_pulse(cx: Lowering) -> StateTiming:
    """Every pulse is the first one of a stream without an end."""
    zero, far = (cx.table([moment]) for moment in (0, FAR))
    return StateTiming(zero, far, 0, True)


def stream_start(cx: Lowering, node: PulsedNode, op: RecurrentStream) -> tuple[list[Array], bool]:
    """What the states hold before the first pulse, and whether they are taken from an input then."""
    slots = [op.op.optional_slot(name) for name in ("h", "c")[: op.op.cell.states]]
    known = [None if slot is None else cx.known(node.inputs[slot]) for slot in slots]
    reload = op.past is None and any(slot is not None and value is None for slot, value in zip(slots, known))
    begin = op.begin()
    if op.past is None:
        begin = [zeros if value is None else zeros + value for zeros, value in zip(begin, known)]
    return [np.ascontiguousarray(first) for first in begin], reload
