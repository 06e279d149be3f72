"""The number of streams of a model that one core runs in real time: lanes in one call against separate states."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.models import Entry
from bench.models.gru import gru
from bench.models.published import published_entries
from bench.power import watts
from bench.timing import Ratio, alternate
from pulse.facts import Array
from pulse.program.program import Program
from pulse.program.streams.lanes import Lanes
from pulse.program.streams.state import State

COUNTS = (1, 4, 16, 64, 256)
ROUNDS = 7
STEPS = 400
"""Steps of a stream in each round, over all lanes; at least ``FEWEST`` calls."""
FEWEST = 5


@dataclass(frozen=True)
class LanesRow:
    """This many streams.

    us_per_stream     p50 of a call of all lanes, divided by their number
    alone_us          the same of separate states, stepped one after the other
    streams_per_core  how many streams keep up with real time on one core
    times             separate over lanes, round by round
    watts             of all packages of the processor while the lanes step; None if the machine does not tell
    """

    title: str
    lanes: int
    us_per_stream: float
    alone_us: float
    streams_per_core: float
    alone_per_core: float
    times: Ratio
    watts: float | None = None

    @property
    def streams_per_watt(self) -> float | None:
        """The streams of one core in real time over the power of the whole processor, other cores idle or not."""
        return None if not self.watts else self.streams_per_core / self.watts


def lanes_entries(folder: Path) -> Iterator[Entry]:
    """The models of the lanes' table."""
    for hidden in (64, 256):
        yield Entry(
            f"gru_{hidden}", f"GRU 2x{hidden}", 1, source=lambda hidden=hidden: gru(hidden), rate_hz=100.0
        )
    yield from (entry for entry in published_entries(folder) if entry.key == "gtcrn")


def lanes_rows(entry: Entry, counts: Sequence[int] = COUNTS, rounds: int = ROUNDS) -> Iterator[LanesRow]:
    """One row for each number of lanes. Raises AssertionError if a lane differs from its separate state."""
    program = entry.program(entry.source())
    steps_per_s = entry.rate_hz / entry.pulse
    for count in counts:
        pulses = noise(program, count)
        lanes, states = program.spawn_many(count), [program.spawn() for _ in range(count)]
        check(lanes, states, pulses)
        steps = max(FEWEST, STEPS // count)
        calls: dict[str, Callable[[], object]] = {
            "lanes": lambda lanes=lanes, pulses=pulses: lanes.step(pulses),
            "alone": lambda states=states, pulses=pulses: step_separately(states, pulses),
        }
        times_by_name = alternate(calls, rounds, steps, FEWEST)
        us, alone = (times_by_name.median(name).p50_us / count for name in ("lanes", "alone"))
        speed = 1e6 / steps_per_s
        times, power = times_by_name.ratio("alone", "lanes"), watts(calls["lanes"])
        yield LanesRow(entry.title, count, us, alone, speed / us, speed / alone, times, power)


def noise(program: Program, count: int) -> Array:
    """A pulse for each lane."""
    (port,) = [port for port in program.inputs if port.streams]
    return np.random.default_rng(0).standard_normal((count, *port.shape)).astype(np.float32)


def step_separately(states: Sequence[State], pulses: Array) -> list[dict[str, Array]]:
    """Separate states, one after the other."""
    return [state.step(one) for state, one in zip(states, pulses)]


def check(lanes: Lanes, states: Sequence[State], pulses: Array) -> None:
    """Three steps of both must agree."""
    for _ in range(3):
        together, alone = lanes.step(pulses), step_separately(states, pulses)
        for name, values in together.items():
            expected = np.stack([result[name] for result in alone])
            np.testing.assert_allclose(values, expected, 1e-4, 1e-5, err_msg=name)
