"""The number of streams of a model that one core runs in real time: lanes in one call against separate states."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.measurement.noise import lane_noise
from bench.measurement.power import watts
from bench.measurement.roofline import BandwidthProbe, Machine, roofline, working_set
from bench.measurement.timing import Ratio, alternate
from bench.models import Entry, catalogue
from bench.models.gru import gru
from pulse.facts import Array
from pulse.program.native.native_program import NativeProgram
from pulse.program.streams.lanes import Lanes
from pulse.program.streams.state import State

COUNTS = (1, 16, 64)
"""Numbers of streams in one call."""
ROUNDS = 7
"""Rounds in which the calls alternate."""
STEPS = 400
"""Steps of a stream in each round, over all lanes; at least ``MIN_ROUNDS`` calls."""
MIN_ROUNDS = 5
"""Minimum number of calls in a round, however many lanes there are."""


@dataclass(frozen=True)
class LanesRow:
    """This many streams.

    title             name of the model
    lanes             number of streams
    pulse_ms          the time that a pulse of a stream lasts
    us_per_stream     p50 of a call of all lanes, divided by their number
    alone_us          the same for separate states, stepped one after the other
    streams_per_core  how many streams keep up with real time on one core
    alone_per_core    the same for separate states
    times             separate over lanes, round by round
    min_us            the roofline of a call, divided by the number of lanes
    watts             power of all packages of the processor while the lanes step; None if the machine has no counters
    """

    title: str
    lanes: int
    pulse_ms: float
    us_per_stream: float
    alone_us: float
    streams_per_core: float
    alone_per_core: float
    times: Ratio
    min_us: float
    watts: float | None = None

    @property
    def streams_per_watt(self) -> float | None:
        """The streams of one core in real time over the power of the whole processor, other cores idle or not."""
        return None if not self.watts else self.streams_per_core / self.watts


def lanes_entries(folder: Path) -> Iterator[Entry]:
    """Yield the models of the lanes' table: those of the bench, and a smaller recurrent one."""
    yield Entry("gru_64", "GRU 2x64", 1, source=lambda: gru(64))
    yield from catalogue(folder)


def lanes_rows(
    entry: Entry, machine: Machine, counts: Sequence[int] = COUNTS, rounds: int = ROUNDS
) -> Iterator[LanesRow]:
    """Yield one row for each number of lanes. Raises AssertionError: a lane differs from its separate state."""
    program = entry.program(entry.source())
    assert isinstance(program, NativeProgram), "the bench runs the numba backend"
    pulse_ms = 1e3 * entry.pulse / entry.rate_hz
    for count in counts:
        pulses = lane_noise(program, count) * np.float32(entry.scale)
        lanes, states = program.spawn_many(count), [program.spawn() for _ in range(count)]
        check(lanes, states, pulses)
        steps, reading = max(MIN_ROUNDS, STEPS // count), BandwidthProbe(working_set(program, count))
        calls: dict[str, Callable[[], object]] = {
            "lanes": lambda lanes=lanes, pulses=pulses: lanes.step(pulses),
            "alone": lambda states=states, pulses=pulses: step_separately(states, pulses),
            "reading": reading,
        }
        timed = alternate(calls, rounds, steps, MIN_ROUNDS)
        us, alone = (timed.median(name).p50_us / count for name in ("lanes", "alone"))
        bytes_per_s = reading.bytes / timed.median("reading").p50_us * 1e6
        min_us = roofline(program, bytes_per_s, machine.multiply_adds_per_s, count).min_us / count
        times, power = timed.ratio("alone", "lanes"), watts(calls["lanes"])
        speed = 1e3 * pulse_ms
        yield LanesRow(
            title=entry.title,
            lanes=count,
            pulse_ms=pulse_ms,
            us_per_stream=us,
            alone_us=alone,
            streams_per_core=speed / us,
            alone_per_core=speed / alone,
            times=times,
            min_us=min_us,
            watts=power,
        )


def step_separately(states: Sequence[State], pulses: Array) -> list[dict[str, Array]]:
    """Step separate states, one after the other."""
    return [state.step(frames) for state, frames in zip(states, pulses)]


def check(lanes: Lanes, states: Sequence[State], pulses: Array) -> None:
    """Require that three steps of both agree."""
    for _ in range(3):
        together, alone = lanes.step(pulses), step_separately(states, pulses)
        for name, values in together.items():
            expected = np.stack([result[name] for result in alone])
            largest = float(np.abs(expected).max(initial=1.0))
            np.testing.assert_allclose(values, expected, 1e-4, 1e-5 * largest, err_msg=name)
