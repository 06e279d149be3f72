"""Policies: what happens when a model is slower than its input.

The four names are the same for devices, which cannot wait and play silence until the next output is ready, and for
sources of an executor, which can.

``wait``                   device: late audio is played late; nothing is lost, and the delay is longer from then on.
                           Source: it waits for the engine
``drop_oldest``            device: pulses whose audio would be too late are not computed; the delay does not change.
                           Source: the oldest pulse that has not started is dropped; the source does not wait
``silence_then_catch_up``  device: all pulses are computed, late audio is not played; the delay does not change.
                           Source: a reader gets silence in place of a late output
``abort``                  device: the run ends with an error. Source: the stream fails if an output is late
"""

from pulse.errors import InputError
from pulse.support.naming import require_name
from pulse.support.record import record
from streaming.native import control_block as cb


@record
class Policy:
    """A policy. The flags are the rules for sources if an engine is too slow, at its input and at its output.

    name     as options and messages have it
    code     what the control block of a device has
    drops    if the queue is full, the oldest pulse that has not started is dropped; if there is none, the new one.
             Otherwise the source waits.
    silent   if an output is requested and late, silence of the same length is returned, and the output is discarded
             when it arrives
    aborts   if an output is requested and late, the stream fails

    An output is *late* if it is not ready when a reader waits for it ``deadline_s`` or more after the arrival of the
    last sample of its pulse. Outputs that are ready are never discarded, however long they took.
    """

    name: str
    code: int
    drops: bool = False
    silent: bool = False
    aborts: bool = False

    @property
    def needs_deadline(self) -> bool:
        """Whether the policy checks if an output is late."""
        return self.silent or self.aborts

    @classmethod
    def of_name(cls, name: str) -> "Policy":
        """Return the one of ``POLICIES`` with this name. Raises InputError: there is none."""
        return POLICIES[require_name("policy", name, POLICIES, InputError)]


POLICIES = {
    policy.name: policy
    for policy in (
        Policy("wait", cb.WAIT),
        Policy("drop_oldest", cb.DROP_OLDEST, drops=True),
        Policy("silence_then_catch_up", cb.SILENCE_THEN_CATCH_UP, silent=True),
        Policy("abort", cb.ABORT, aborts=True),
    )
}
"""The policies by name. All but ``drop_oldest`` make a source wait while ``depth`` pulses are in flight."""
