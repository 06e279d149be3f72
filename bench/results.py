"""Results of the bench: printed, written and read again."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.calls import CallTime
from bench.contest import OURS, SPECIAL, Contest
from bench.growth import Growth
from bench.host import Host
from bench.models.entry import Target
from bench.roofline import Machine, Roofline
from bench.start_times import Start
from bench.stream_lanes import LanesRow
from bench.timing import Comparison, Percentiles, Ratio

PEERS = ("onnxruntime", "tract")
"""The runtimes that this project is compared with."""


@dataclass(frozen=True)
class RuntimeTimes:
    """One runtime on one model: the form that ran, and its time compared with ours.

    times   p50 of this runtime over ours, round by round
    tail    the same of p99.9
    """

    how: str
    us: Percentiles
    times: Ratio
    tail: Ratio


@dataclass(frozen=True)
class Row:
    """One model at one pulse.

    runtimes  by name, this project among them
    forms     all that was tried: runtime, how, status, note
    least     the roofline; None if the model does not run
    target    how many times slower each peer should be
    error     why there are no times; empty if there are
    """

    key: str
    title: str
    pulse: int
    rate_hz: float
    runtimes: Mapping[str, RuntimeTimes] = field(default_factory=dict[str, RuntimeTimes])
    forms: Sequence[Mapping[str, str]] = ()
    least: Roofline | None = None
    target: Target = field(default_factory=Target)
    error: str = ""

    @classmethod
    def of(cls, contest: Contest, comparison: Comparison, least: Roofline) -> "Row":
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
            least=least,
            target=entry.target,
        )

    @property
    def ours(self) -> RuntimeTimes:
        """This project."""
        return self.runtimes[OURS]

    @property
    def fastest_us(self) -> float:
        """The p50 of this project with special rows if it has them, else without, in microseconds."""
        return self.runtimes.get(SPECIAL, self.ours).us.p50_us

    @property
    def over_roofline(self) -> float:
        """Our p50 as a multiple of the roofline."""
        assert self.least is not None
        return self.ours.us.p50_us / self.least.min_us

    def target_results(self) -> Iterator[tuple[str, float, float, bool]]:
        """Yield each target: the rival, the target, the measured figure, and whether it is reached."""
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


@dataclass(frozen=True)
class Results:
    """A whole run."""

    host: Host
    machine: Machine
    rounds: int
    steps: int
    rows: Sequence[Row]
    lanes: Sequence[LanesRow] = ()
    starts: Sequence[Start] = ()
    growth: Sequence[Growth] = ()
    calls: Sequence[CallTime] = ()

    @property
    def timed_rows(self) -> list[Row]:
        return [row for row in self.rows if not row.error]

    def mean(self, peer: str) -> float:
        """Return how many times slower a peer is: the geometric mean over all models; NaN if none ran in it."""
        return _mean(row.runtimes[peer].times.median for row in self.timed_rows if peer in row.runtimes)

    def special_mean(self, peer: str) -> float:
        """Return ``mean``, with special rows where a model uses them."""
        rows = [row for row in self.timed_rows if peer in row.runtimes]
        return _mean(row.runtimes[peer].times.median * row.ours.us.p50_us / row.fastest_us for row in rows)

    def summary(self) -> Iterator[str]:
        """Yield the geometric mean and the least ratio of each peer, then the models furthest from their roofline."""
        for peer in PEERS:
            rows = [row for row in self.timed_rows if peer in row.runtimes]
            if rows:
                least = min(rows, key=lambda row: row.runtimes[peer].times.median)
                yield (
                    f"geometric mean against {peer}, {len(rows)} models: {self.mean(peer):.2f}; "
                    f"least {least.runtimes[peer].times.median:.2f}, {least.title}"
                )
        if self.timed_rows:
            furthest = max(self.timed_rows, key=lambda row: row.over_roofline)
            mean = _mean(row.over_roofline for row in self.timed_rows)
            yield f"times the roofline: geometric mean {mean:.2f}; most {furthest.over_roofline:.2f}, {furthest.title}"
        if special := [row for row in self.timed_rows if SPECIAL in row.runtimes]:
            means = ", ".join(f"{self.special_mean(peer):.2f} against {peer}" for peer in PEERS)
            yield f"with special rows, which {len(special)} models use: geometric mean {means}"

    def write(self, path: Path) -> None:
        """Write the results as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Return the results in a file of ``write``."""
        fields = json.loads(path.read_text())
        machine = Machine(
            tuple((size, rate) for size, rate in fields["machine"]["bandwidth"]),
            fields["machine"]["multiply_adds_per_s"],
        )
        rows = [_row(entry) for entry in fields["rows"]]
        lanes = [LanesRow(**{**entry, "times": Ratio(**entry["times"])}) for entry in fields["lanes"]]
        starts = [Start(**entry) for entry in fields["starts"]]
        growth = [Growth(**entry) for entry in fields["growth"]]
        host = Host(**fields["host"])
        calls = [CallTime(**entry) for entry in fields.get("calls", ())]
        return cls(
            host=host,
            machine=machine,
            rounds=fields["rounds"],
            steps=fields["steps"],
            rows=rows,
            lanes=lanes,
            starts=starts,
            growth=growth,
            calls=calls,
        )


def _mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean; NaN for no values."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def _row(fields: Mapping[str, Any]) -> Row:
    runtimes = {
        name: RuntimeTimes(
            entry["how"], Percentiles(**entry["us"]), Ratio(**entry["times"]), Ratio(**entry["tail"])
        )
        for name, entry in fields["runtimes"].items()
    }
    least = None if fields["least"] is None else Roofline(**fields["least"])
    target = Target(**fields["target"])
    rest: dict[str, Any] = {**fields, "runtimes": runtimes, "least": least, "target": target}
    return Row(**rest)
