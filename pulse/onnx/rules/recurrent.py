"""Recurrent layers."""

from collections.abc import Iterator

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.relations import HasRank, HasSize, Relation, SameSize, SameType, Scaled
from pulse.infer.wire_facts import Axis
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import rule

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTHS, STATES, PEEPHOLES = 4, (5, 6), 7


@rule(*GATES)
def recurrent(clues: Clues) -> Iterator[Relation]:
    """Of x [T, N, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], states [D, N, H] -> y [T, D, N, H], states.

    With layout 1 the batch N is in front: x [N, T, I], states [N, D, H], y [N, T, D, H].
    """
    x, w, r = (clues.input(slot) for slot in range(3))
    y, *left = clues.outlets
    given = [clues.input(slot) for slot in STATES if clues.has(slot)]
    states = [*given, *left]
    more = [clues.input(slot) for slot in (3, PEEPHOLES) if clues.has(slot)]
    yield SameType([x, w, r, *states, *more, y])
    yield HasRank([x, w, r, *states], 3)
    yield HasRank([y], 4)
    yield HasRank(more, 2)
    first = bool(clues.flag("layout"))
    time, batch = (1, 0) if first else (0, 1)
    side = 1 if first else 0
    yield SameSize([Axis(x, time), Axis(y, time)])
    yield SameSize([Axis(x, batch), Axis(y, 0 if first else 2), *_axes(states, 1 - side)])
    yield SameSize([Axis(x, 2), Axis(w, 2)])
    yield SameSize([Axis(r, 2), Axis(y, 3), *_axes(states, 2)])
    directions = 2 if clues.text("direction", "forward") == "bidirectional" else 1
    sides = [Axis(w, 0), Axis(r, 0), Axis(y, 2 if first else 1), *_axes(states, side), *_axes(more, 0)]
    yield HasSize(sides, TDim.of(directions))
    for matrix in (w, r):
        yield Scaled(Axis(matrix, 1), Axis(r, 2), GATES[clues.op_type])


def _axes(wires: list[OutletId], axis: int) -> list[Axis]:
    return [Axis(wire, axis) for wire in wires]
