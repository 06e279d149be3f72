"""When an op with a state runs: as a stream, or anew with every pulse."""

from pulse.bounds import FAR
from pulse.program.lowering import Lowering
from pulse.program.table.memory import Value
from pulse.record import record


@record
class StateTiming:
    """When an op runs, and where its state comes from.

    clock, end  registers of the pulses so far and of the frames of the stream
    offset      frame j is at index j + offset of the concatenated pulses
    reload      whether the state is taken from an input at the first pulse
    """

    clock: Value
    end: Value
    offset: int
    reload: bool


def restart_each_pulse(cx: Lowering) -> StateTiming:
    """Every pulse is the first one of a stream without an end."""
    zero, far = (cx.table([moment]) for moment in (0, FAR))
    return StateTiming(zero, far, 0, True)
