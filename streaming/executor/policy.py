"""Policies: what an executor does when its engine is slower than a source.

``streaming.live.config`` has policies of the same names for devices, which play silence.
"""

from pulse.errors import InputError
from pulse.support.record import record


@record
class Policy:
    """The rules for an engine that is too slow, at its input and at its output.

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
        """Return the one of ``POLICIES`` with this name. Raises InputError."""
        if name not in POLICIES:
            raise InputError(f"no policy is called {name!r}; the policies are {', '.join(POLICIES)}")
        return POLICIES[name]


POLICIES = {
    policy.name: policy
    for policy in (
        Policy("wait"),
        Policy("drop_oldest", drops=True),
        Policy("silence_then_catch_up", silent=True),
        Policy("abort", aborts=True),
    )
}
"""The policies by name. All but ``drop_oldest`` make the source wait while ``depth`` pulses are in flight."""
