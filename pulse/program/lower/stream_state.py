"""The timing of ops with a state: over a stream, or restarted in every pulse."""

from typing import Any

from pulse.ops.stateful import StatefulOnFrames
from pulse.program.lowering import Lowering
from pulse.program.table.memory import TensorView
from pulse.support.bounds import UNBOUNDED
from pulse.support.record import record


@record
class StateTiming:
    """The clock of an op with a state, and the source of its initial state.

    clock, end  registers with the number of pulses so far and the number of frames of the stream
    offset      frame j is at index j + offset of the concatenated pulses
    reload      whether the state is loaded from an input at the first pulse
    """

    clock: TensorView
    end: TensorView
    offset: int
    reload: bool

    def fields(self) -> dict[str, Any]:
        return {"clock": self.clock, "end": self.end, "offset": self.offset, "reload": self.reload}


def stream_timing(lowering: Lowering, op: StatefulOnFrames, reload: bool) -> StateTiming:
    """Return the timing of an op whose state continues from pulse to pulse."""
    return StateTiming(lowering.clock, lowering.length_register(op.length), op.offset, reload)


def restart_each_pulse(lowering: Lowering) -> StateTiming:
    """Return a timing in which every pulse is the first one of an endless stream."""
    clock, end = (lowering.add_table([value]) for value in (0, UNBOUNDED))
    return StateTiming(clock, end, 0, True)
