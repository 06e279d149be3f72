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
from pulse.support.record import record
from streaming.native import control_block as cb

DEVICE_POLICIES = {
    "wait": cb.WAIT,
    "drop_oldest": cb.DROP_OLDEST,
    "silence_then_catch_up": cb.SILENCE_THEN_CATCH_UP,
    "abort": cb.ABORT,
}
"""The policies for devices, as the control block has them."""


@record
class Policy:
    """A policy for sources: the rules for an engine that is too slow, at its input and at its output.

    name     as options and messages have it
    drops    if the queue is full, the oldest pulse that has not started is dropped; if there is none, the new one.
             Otherwise the source waits.
    silent   if an output is requested and late, silence of the same length is returned, and the output is discarded
             when it arrives
    aborts   if an output is requested and late, the stream fails

    An output is *late* if it is not ready when a reader waits for it ``deadline_s`` or more after the arrival of the
    last sample of its pulse. Outputs that are ready are never discarded, however long they took.
    """

    name: str
    drops: bool = False
    silent: bool = False
    aborts: bool = False

    @property
    def needs_deadline(self) -> bool:
        """Whether the policy checks if an output is late."""
        return self.silent or self.aborts

    @classmethod
    def of_name(cls, name: str) -> "Policy":
        """Return the one of ``SOURCE_POLICIES`` with this name. Raises InputError: there is none."""
        if name not in SOURCE_POLICIES:
            raise InputError(f"no policy is called {name!r}; the policies are {', '.join(SOURCE_POLICIES)}")
        return SOURCE_POLICIES[name]


SOURCE_POLICIES = {
    policy.name: policy
    for policy in (
        Policy("wait"),
        Policy("drop_oldest", drops=True),
        Policy("silence_then_catch_up", silent=True),
        Policy("abort", aborts=True),
    )
}
"""The policies for sources. All but ``drop_oldest`` make the source wait while ``depth`` pulses are in flight."""
