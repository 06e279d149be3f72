"""Policies: what an executor does when its engine is slower than a source.

``streaming.live.config`` has policies of the same names for devices, which play silence.
"""

from pulse.errors import InputError
from pulse.support.record import record


@record
class Policy:
    """The rules for a full engine: at its input and at its output.

    drops    if the queue is full, the oldest pulse that has not started is dropped; if there is none, the new one.
             Otherwise the source waits.
    silent   where an output is wanted and late, silence of the same length goes out, and the output is thrown away
             when it comes
    aborts   where an output is wanted and late, the stream fails

    An output is *late* if it is not there when a reader waits for it ``deadline_s`` after the last sample of its
    pulse has arrived, or later. What is there is never thrown away, however long it took.
    """

    name: str
    drops: bool = False
    silent: bool = False
    aborts: bool = False

    @property
    def needs_deadline(self) -> bool:
        """Whether it checks if an output is late."""
        return self.silent or self.aborts

    @classmethod
    def of_name(cls, name: str) -> "Policy":
        """One of ``POLICIES``. Raises InputError."""
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
"""By name. All but ``drop_oldest`` let the source wait where ``depth`` pulses are under way."""
