"""The states of a recurrent layer before the first pulse."""

import numpy as np

from pulse.facts import Array
from pulse.ops.recurrent import RecurrentStream
from pulse.program.lowering import Lowering, PulsedNode


def stream_start(cx: Lowering, node: PulsedNode, op: RecurrentStream) -> tuple[list[Array], bool]:
    """Return the states before the first pulse, and whether the first pulse loads them from an input instead."""
    slots = [op.op.optional_slot(name) for name in ("h", "c")[: op.op.cell.states]]
    constants = [None if slot is None else cx.known_value(node.inputs[slot]) for slot in slots]
    reload = op.past is None and any(
        slot is not None and value is None for slot, value in zip(slots, constants)
    )
    begin = op.begin()
    if op.past is None:
        begin = [zeros if value is None else zeros + value for zeros, value in zip(begin, constants)]
    return [np.ascontiguousarray(first) for first in begin], reload
