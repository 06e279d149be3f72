"""The forms in which a runtime takes a model, and the choice of the fastest one that is right."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.measurement.timing import alternate, make_stepper
from bench.peers.outputs import Streams, distance, stream_outputs
from bench.peers.peer import Feed, Peer
from pulse.program.program import Program

MAX_ERROR = 1e-4
"""Maximum error of a right output, relative to the largest expected value."""
PILOT_ROUNDS, PILOT_STEPS = 5, 40
"""Rounds, and steps of each form in a round, of the pilot that finds the fastest form of a runtime."""


@dataclass(frozen=True)
class RuntimeForm:
    """One way to run the model in a runtime.

    how     such as ``exported`` or ``pulsed by tract``
    status  ``right``, ``wrong`` or ``fails``
    note    the first line of the error, or how far the result is off
    """

    runtime: str
    how: str
    status: str
    note: str = ""
    peer: Peer | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, str]:
        """Return the form as plain data, for JSON."""
        return {"runtime": self.runtime, "how": self.how, "status": self.status, "note": self.note}


def try_form(
    runtime: str,
    how: str,
    make: Callable[[], Peer],
    program: Program,
    pulses: Sequence[Feed],
    expected: Streams,
) -> RuntimeForm:
    """Build a form and compare its outputs with the expected ones."""
    try:
        peer = make()
        off = distance(stream_outputs(peer, program, pulses), expected, program)
    except Exception as error:  # whatever another runtime raises is its answer
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return RuntimeForm(runtime, how, "fails", lines[0] if lines else type(error).__name__)
    if not off <= MAX_ERROR:
        return RuntimeForm(runtime, how, "wrong", f"off by {off:.1e} of the largest value")
    return RuntimeForm(runtime, how, "right", "", peer)


def fastest(
    forms: Sequence[RuntimeForm], pulses: Sequence[Feed], steps: int = PILOT_STEPS
) -> Iterator[tuple[str, RuntimeForm]]:
    """Yield each runtime with its right form that has the smallest median in its best round of a short run."""
    for runtime in dict.fromkeys(form.runtime for form in forms):
        right = {form.how: form for form in forms if form.runtime == runtime and form.peer is not None}
        if len(right) > 1:
            steppers = {how: make_stepper(form.peer.step, pulses) for how, form in right.items() if form.peer}
            times = alternate(steppers, PILOT_ROUNDS, steps, steps)
            best = {how: min(percentiles.p50_us for percentiles in times.rounds[how]) for how in right}
            yield runtime, right[min(best, key=best.__getitem__)]
        elif right:
            yield runtime, next(iter(right.values()))
