"""Results of the bench: printed, written and read again."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.measurement.host import Host
from bench.measurement.roofline import Machine, Roofline
from bench.measurement.timing import Percentiles, Ratio
from bench.models.entry import Target
from bench.peers.contest import SPECIALISED
from bench.performance.calls import CallTime
from bench.performance.growth import Growth
from bench.performance.lanes import LanesRow
from bench.performance.start_times import Start
from bench.performance.steps import PEERS, RuntimeTimes, StepRow


@dataclass(frozen=True)
class Results:
    """A whole run."""

    host: Host
    machine: Machine
    rounds: int
    steps: int
    rows: Sequence[StepRow]
    lanes: Sequence[LanesRow] = ()
    starts: Sequence[Start] = ()
    growth: Sequence[Growth] = ()
    calls: Sequence[CallTime] = ()

    @property
    def timed_rows(self) -> list[StepRow]:
        return [row for row in self.rows if not row.error]

    def mean(self, peer: str) -> float:
        """Return how many times slower a peer is: the geometric mean over all models; NaN if none ran in it."""
        return _mean(row.runtimes[peer].times.median for row in self.timed_rows if peer in row.runtimes)

    def specialised_mean(self, peer: str) -> float:
        """Return ``mean``, with specialised kernels where a model uses them."""
        rows = [row for row in self.timed_rows if peer in row.runtimes]
        return _mean(row.runtimes[peer].times.median * row.ours.us.p50_us / row.fastest_us for row in rows)

    def summary(self) -> Iterator[str]:
        """Yield the geometric mean and the lowest ratio of each peer, then the models furthest from their roofline."""
        for peer in PEERS:
            rows = [row for row in self.timed_rows if peer in row.runtimes]
            if rows:
                lowest = min(rows, key=lambda row: row.runtimes[peer].times.median)
                yield (
                    f"geometric mean against {peer}, {len(rows)} models: {self.mean(peer):.2f}; "
                    f"lowest {lowest.runtimes[peer].times.median:.2f}, {lowest.title}"
                )
        if self.timed_rows:
            furthest = max(self.timed_rows, key=lambda row: row.over_roofline)
            mean = _mean(row.over_roofline for row in self.timed_rows)
            highest = f"{furthest.over_roofline:.2f}, {furthest.title}"
            yield f"times the roofline: geometric mean {mean:.2f}; highest {highest}"
        if specialised := [row for row in self.timed_rows if SPECIALISED in row.runtimes]:
            means = ", ".join(f"{self.specialised_mean(peer):.2f} against {peer}" for peer in PEERS)
            yield f"with specialised kernels, which {len(specialised)} models use: geometric mean {means}"

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
        rows = [_step_row(entry) for entry in fields["rows"]]
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


def _step_row(fields: Mapping[str, Any]) -> StepRow:
    runtimes = {
        name: RuntimeTimes(
            entry["how"], Percentiles(**entry["us"]), Ratio(**entry["times"]), Ratio(**entry["tail"])
        )
        for name, entry in fields["runtimes"].items()
    }
    roofline = None if fields["roofline"] is None else Roofline(**fields["roofline"])
    target = Target(**fields["target"])
    rest: dict[str, Any] = {**fields, "runtimes": runtimes, "roofline": roofline, "target": target}
    return StepRow(**rest)
