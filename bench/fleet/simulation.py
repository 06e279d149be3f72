"""A calculation for many streams: machines, traffic, the first part that is full, losses of a year.

Unit costs are measured. The year is a simulation of events: machines, processes and racks are lost at random; the
streams of each loss resume on the workers that are left, at random, as the hash spreads them, and wait there until the
processor has time to spare. The time on the network is not in the gaps.
"""

import heapq
from dataclasses import dataclass
from math import ceil

import numpy as np

from bench.fleet.unit_costs import UnitCosts, measure
from streaming.builtin import SAMPLE_RATE_HZ
from streaming.fleet.ray_cluster import MAX_HOLDER_BYTES
from streaming.fleet.ray_fleet import ROUND_PERIOD_S

SIZES = (10_000, 1_000_000)
"""Numbers of streams of the calculated fleets."""
DAY_S = 86_400.0
"""Seconds of a day."""
YEAR_S = 365 * DAY_S
"""Seconds of a year, the length of a simulation."""
PULSES_PER_S = SAMPLE_RATE_HZ / 160
"""Pulses of a stream per second."""
MAX_STALL_S = 0.02
"""How long an event loop may be busy with the fleet's own work at once."""


@dataclass(frozen=True)
class Assumptions:
    """The assumptions that are not measured.

    cores, nic_bytes_s  the cores of a machine, a worker on each; bytes per second of its network
    load             the fraction of a core that streams fill; above ``budget`` a worker refuses them
    budget           the fraction of a core beyond which a worker refuses streams
    checkpoint_s     seconds of sound between two checkpoints of a stream
    process_days, machine_days, rack_days  mean time to a loss, of one of them
    rack, racks      machines that are lost together; the machines of a fleet are spread over at least this many racks
    silence_s        time after which a client leaves a machine that does not answer
    repair_s         time until a worker is replaced
    copies           number of copies of a checkpoint
    """

    cores: int = 16
    nic_bytes_s: float = 1.25e9
    load: float = 0.6
    budget: float = 0.8
    checkpoint_s: float = 1.0
    process_days: float = 30.0
    machine_days: float = 60.0
    rack_days: float = 700.0
    rack: int = 32
    racks: int = 4
    silence_s: float = 0.4
    repair_s: float = 20.0
    copies: int = 1


@dataclass(frozen=True)
class Part:
    """A part of a fleet.

    filled  load at each number of streams; 1 is full
    full    the number of streams in one fleet at which it is full; None: it grows with the machines
    """

    name: str
    filled: tuple[float, ...]
    full: float | None


@dataclass(frozen=True)
class Year:
    """A simulated year of one size.

    streams           open streams
    fleets            number of fleets of the same size, since one of them is full
    machines, workers  their numbers in all fleets
    traffic           bytes per second of all checkpoints, in addition to the sound
    sound             bytes per second of the sound
    losses            lost processes, machines and racks
    moved             streams that resumed on another worker
    gone              streams whose checkpoint was lost with them
    gaps_ms           p50, p99 and the longest
    """

    streams: int
    fleets: int
    machines: int
    workers: int
    traffic: float
    sound: float
    losses: dict[str, int]
    moved: int
    gone: int
    gaps_ms: tuple[float, float, float]


@dataclass(frozen=True)
class Simulation:
    """The results of both sizes."""

    costs: UnitCosts
    assumed: Assumptions
    parts: tuple[Part, ...]
    years: tuple[Year, ...]


def simulate(
    costs: UnitCosts | None = None, assumptions: Assumptions | None = None, seed: int = 0
) -> Simulation:
    """Return the results of both sizes; costs are measured unless they are given."""
    costs, assumptions = costs or measure(), assumptions or Assumptions()
    parts = tuple(_parts(costs, assumptions))
    limit = min((part.full for part in parts if part.full is not None), default=float("inf"))
    years = tuple(_year(size, limit, costs, assumptions, seed) for size in SIZES)
    return Simulation(costs, assumptions, parts, years)


def stream_load(costs: UnitCosts, assumptions: Assumptions) -> float:
    """Return the fraction of a core that a stream takes, its checkpoints included."""
    save = costs.snapshot + assumptions.copies * ((costs.ray_save or 0.0) - (costs.ray_save_holder or 0.0))
    return 1e-6 * (costs.message * PULSES_PER_S + save / assumptions.checkpoint_s)


def streams_per_worker(costs: UnitCosts, assumptions: Assumptions) -> int:
    """Return how many streams a worker with one core serves."""
    return max(1, int(assumptions.load / stream_load(costs, assumptions)))


def _parts(costs: UnitCosts, assumptions: Assumptions) -> list[Part]:
    """Return how full each part is, as a function of the streams of one fleet."""
    worker_streams = streams_per_worker(costs, assumptions)
    machine_streams = worker_streams * assumptions.cores
    saves = assumptions.copies / assumptions.checkpoint_s

    def workers(streams: float) -> float:
        return streams / worker_streams

    def steady(value: float) -> tuple[float, ...]:
        return tuple(value for _ in SIZES)

    def growing_part(name: str, filled_by_worker: float, power: int = 1) -> Part:
        filled = tuple(filled_by_worker * workers(size) ** power for size in SIZES)
        return Part(name, filled, worker_streams * (1 / filled_by_worker) ** (1 / power))

    nic = machine_streams * (costs.sound_bytes + 2 * saves * costs.checkpoint_bytes) / assumptions.nic_bytes_s
    check = 1e-6 * (costs.check + (costs.ray_call or 0.0)) / ROUND_PERIOD_S
    successors_s = 1e-6 * costs.rank * worker_streams / MAX_STALL_S
    return [
        Part("cores of the workers", steady(assumptions.load), None),
        Part("network of a machine", steady(nic), None),
        Part(
            "holder of a machine, one thread",
            steady(1e-6 * (costs.ray_save_holder or 0.0) * machine_streams * saves),
            None,
        ),
        Part(
            "memory of a holder",
            steady(machine_streams * assumptions.copies * costs.checkpoint_bytes / MAX_HOLDER_BYTES),
            None,
        ),
        growing_part("control: a check of all workers each half second", check),
        growing_part("event loop: new successors for all streams of a worker in 20 ms", successors_s),
        growing_part("event loop: the worker of one stream in 20 ms", 1e-6 * costs.rank / MAX_STALL_S),
        growing_part(
            "network: a changed table to all workers in 1 s", costs.table_bytes / assumptions.nic_bytes_s, 2
        ),
    ]


def _year(size: int, limit: float, costs: UnitCosts, assumptions: Assumptions, seed: int) -> Year:
    worker_streams = streams_per_worker(costs, assumptions)
    fleets = max(1, ceil(size / limit))
    of_one = size / fleets
    machines = ceil(of_one / worker_streams / assumptions.cores) + 1  # one may be lost
    workers = machines * assumptions.cores
    racks = max(assumptions.racks, ceil(fleets * machines / assumptions.rack))
    together = ceil(machines / racks)  # of a fleet, in one rack
    workers_lost = {"process": 1, "machine": assumptions.cores, "rack": together * assumptions.cores}
    fleets_hit = {"process": 1, "machine": 1, "rack": min(fleets, ceil(fleets * machines / racks / together))}
    rates = {
        "process": fleets * workers / (assumptions.process_days * DAY_S),
        "machine": fleets * machines / (assumptions.machine_days * DAY_S),
        "rack": racks / (assumptions.rack_days * DAY_S),
    }
    rng = np.random.default_rng(seed)
    events = [(float(rng.exponential(1 / rate)), cause) for cause, rate in rates.items()]
    heapq.heapify(events)
    losses = dict.fromkeys(workers_lost, 0)
    gaps: list[np.ndarray] = []
    resumed = gone = 0
    away: list[tuple[float, int]] = []
    while events[0][0] < YEAR_S:
        now_s, cause = heapq.heappop(events)
        heapq.heappush(events, (now_s + float(rng.exponential(1 / rates[cause])), cause))
        away = [leaver for leaver in away if leaver[0] > now_s]
        live_workers = workers - sum(count for _, count in away) / fleets
        lost = workers_lost[cause]
        losses[cause] += 1
        with_holder = (together - 1) / (machines - 1) if cause == "rack" else 0.0
        for _ in range(fleets_hit[cause]):
            streams_hit = int(rng.poisson(of_one * lost / workers))
            away.append((now_s + assumptions.repair_s, lost))
            without = int(rng.binomial(streams_hit, with_holder**assumptions.copies))
            resumed, gone = resumed + streams_hit - without, gone + without
            survivors = live_workers - lost
            gaps.append(
                _gaps_s(
                    streams_hit - without, int(survivors), of_one / survivors, cause, costs, assumptions, rng
                )
            )
    joined = 1e3 * np.concatenate(gaps)
    return Year(
        streams=size,
        fleets=fleets,
        machines=fleets * machines,
        workers=fleets * workers,
        traffic=size * assumptions.copies * costs.checkpoint_bytes / assumptions.checkpoint_s,
        sound=size * costs.sound_bytes,
        losses=losses,
        moved=resumed,
        gone=gone,
        gaps_ms=(float(np.percentile(joined, 50)), float(np.percentile(joined, 99)), float(joined.max())),
    )


def _gaps_s(
    hit: int,
    survivors: int,
    streams: float,
    cause: str,
    costs: UnitCosts,
    assumptions: Assumptions,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return how long each lost stream is silent: until the loss is noticed and a survivor has had time for it."""
    if not hit:
        return np.zeros(0)
    share = stream_load(costs, assumptions)
    survivor_indices = np.sort(rng.integers(0, survivors, hit))
    _, first, inverse = np.unique(survivor_indices, return_index=True, return_inverse=True)
    queue_position = np.arange(hit) - first[inverse] + 1  # in the queue of its survivor
    spare = 1 - np.minimum(assumptions.budget, share * rng.poisson(streams, first.size))
    replay = share * rng.uniform(0, assumptions.checkpoint_s, hit).mean()
    resume_s = 1e-6 * (costs.open + costs.restore + costs.rank * survivors) + replay
    silence_s = 0.0 if cause == "process" else assumptions.silence_s
    return silence_s + queue_position * resume_s / spare[inverse]


def text(simulation: Simulation) -> str:
    """Return the tables, as Markdown."""
    costs, assumptions = simulation.costs, simulation.assumed
    lines = ["| measured | |", "|---|---:|"]
    for name, value in _cost_rows(costs):
        lines.append(f"| {name} | {value} |")
    lines += ["", "| | " + " | ".join(f"{year.streams:,} streams" for year in simulation.years) + " |"]
    lines.append("|---|" + "---:|" * len(simulation.years))
    rows = [
        ("fleets", [str(year.fleets) for year in simulation.years]),
        (f"machines of {assumptions.cores} cores", [f"{year.machines:,}" for year in simulation.years]),
        ("workers", [f"{year.workers:,}" for year in simulation.years]),
        ("checkpoints", [f"{year.traffic / 1e9:.2f} GB/s" for year in simulation.years]),
        ("sound, both directions", [f"{year.sound / 1e9:.2f} GB/s" for year in simulation.years]),
        *(
            (f"lost in a year: {cause}", [f"{year.losses.get(cause, 0):,}" for year in simulation.years])
            for cause in ("process", "machine", "rack")
        ),
        ("streams resumed on another worker", [f"{year.moved:,}" for year in simulation.years]),
        ("streams lost with their checkpoint", [f"{year.gone:,}" for year in simulation.years]),
        ("gap p50", [f"{year.gaps_ms[0]:.0f} ms" for year in simulation.years]),
        ("gap p99", [f"{year.gaps_ms[1]:.0f} ms" for year in simulation.years]),
        ("longest gap", [f"{year.gaps_ms[2]:.0f} ms" for year in simulation.years]),
    ]
    lines += [f"| {name} | {' | '.join(values)} |" for name, values in rows]
    lines += ["", "| part of one fleet | " + " | ".join(f"at {size:,}" for size in SIZES) + " | full at |"]
    lines.append("|---|" + "---:|" * (len(SIZES) + 1))
    for part in sorted(simulation.parts, key=lambda part: part.full or float("inf")):
        full = "grows with the machines" if part.full is None else f"{part.full:,.0f} streams"
        lines.append(f"| {part.name} | {' | '.join(f'{share:.0%}' for share in part.filled)} | {full} |")
    return "\n".join(lines)


def _cost_rows(costs: UnitCosts) -> list[tuple[str, str]]:
    def us(value: float | None) -> str:
        return "not measured: ray is missing" if value is None else f"{value:.1f} us"

    return [
        ("a step of one stream, p99", us(costs.step_p99)),
        ("a pulse in the server, CPU of all it does", us(costs.message)),
        ("a checkpoint", f"{costs.checkpoint_bytes:,} bytes"),
        ("making it", us(costs.snapshot)),
        ("resuming from it", us(costs.restore)),
        ("keeping it, in the holder's memory", us(costs.hold)),
        ("the same through Ray, CPU of worker and holder", us(costs.ray_save)),
        ("of this the holder", us(costs.ray_save_holder)),
        ("opening and closing a stream, CPU of both sides", us(costs.open)),
        ("finding its worker, for each worker that there is", us(costs.rank)),
        ("a check by the control, for each worker", us(costs.check)),
        ("Ray's call of a worker in that check", us(costs.ray_call)),
        ("the table, for each worker", f"{costs.table_bytes:.0f} bytes"),
        (
            "sound of a stream in 20 ms blocks of 16-bit samples, both directions",
            f"{costs.sound_bytes / 1e3:.1f} kB/s",
        ),
    ]
