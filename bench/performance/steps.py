"""The time of one step of a model in each runtime, and its roofline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.measurement.roofline import BandwidthProbe, Machine, Roofline, roofline, working_set
from bench.measurement.timing import Comparison, Percentiles, Ratio, alternate
from bench.models import Entry
from bench.models.entry import Target
from bench.peers.contest import OURS, SPECIALISED, Contest, contest
from bench.peers.outputs import WrongResultError
from pulse.errors import PulseError
from pulse.program.native.native_program import NativeProgram

PEERS = ("onnxruntime", "tract")
"""The runtimes that this project is compared with."""
READING = "memory"
"""The stepper that only reads."""


@dataclass(frozen=True)
class RuntimeTimes:
    """One runtime on one model: the form that ran, and its time compared with ours.

    times   p50 of this runtime over ours, round by round
    tail    the same for p99.9
    """

    how: str
    us: Percentiles
    times: Ratio
    tail: Ratio


@dataclass(frozen=True)
class StepRow:
    """One model at one pulse.

    key, title  its name in the command line and in tables
    pulse     frames of a pulse
    rate_hz   frames of its input per second
    runtimes  times by name of the runtime, with this project
    forms     all that was tried: runtime, how, status, note
    roofline  roofline of a step; None if the model does not run
    target    how many times slower each peer should be
    error     why there are no times; empty if there are
    """

    key: str
    title: str
    pulse: int
    rate_hz: float
    runtimes: Mapping[str, RuntimeTimes] = field(default_factory=dict[str, RuntimeTimes])
    forms: Sequence[Mapping[str, str]] = ()
    roofline: Roofline | None = None
    target: Target = field(default_factory=Target)
    error: str = ""

    @classmethod
    def of(cls, contest: Contest, comparison: Comparison, roofline: Roofline) -> "StepRow":
        """Return the row of one contest, from its rounds."""
        entry = contest.entry
        runtimes = {
            name: RuntimeTimes(
                form.how,
                comparison.median(name),
                comparison.ratio(name, OURS),
                comparison.ratio(name, OURS, "p99_9_us"),
            )
            for name, form in contest.best.items()
        }
        forms = [form.as_dict() for form in contest.forms]
        return cls(
            key=entry.key,
            title=entry.title,
            pulse=entry.pulse,
            rate_hz=entry.rate_hz,
            runtimes=runtimes,
            forms=forms,
            roofline=roofline,
            target=entry.target,
        )

    @property
    def ours(self) -> RuntimeTimes:
        """This project."""
        return self.runtimes[OURS]

    @property
    def fastest_us(self) -> float:
        """The p50 of this project with specialised kernels if it has them, else without, in microseconds."""
        return self.runtimes.get(SPECIALISED, self.ours).us.p50_us

    @property
    def over_roofline(self) -> float:
        """Our p50 as a multiple of the roofline."""
        assert self.roofline is not None
        return self.ours.us.p50_us / self.roofline.min_us

    def target_results(self) -> Iterator[tuple[str, float, float, bool]]:
        """Yield each target: the peer or ``roofline``, the target, the measured figure, whether it is reached."""
        for peer in PEERS:
            target = getattr(self.target, peer)
            if target is not None and peer in self.runtimes:
                median = self.runtimes[peer].times.median
                yield peer, target, median, median >= target
        if self.target.roofline is not None:
            yield (
                "roofline",
                self.target.roofline,
                self.over_roofline,
                self.over_roofline <= self.target.roofline,
            )


def step_row(entry: Entry, machine: Machine, rounds: int, steps: int, specialise: bool = False) -> StepRow:
    """Return the row of a model, with the error if it does not run here."""
    try:
        result = contest(entry, specialise=specialise)
    except (PulseError, WrongResultError) as error:
        return StepRow(
            entry.key, entry.title, entry.pulse, entry.rate_hz, target=entry.target, error=str(error)
        )
    program = result.program
    assert isinstance(program, NativeProgram), "the bench runs the numba backend"
    reading = BandwidthProbe(working_set(program))
    comparison = alternate({**result.steppers(), READING: reading}, rounds, steps)
    bytes_per_s = reading.bytes / comparison.median(READING).p50_us * 1e6
    return StepRow.of(result, comparison, roofline(program, bytes_per_s, machine.multiply_adds_per_s))
