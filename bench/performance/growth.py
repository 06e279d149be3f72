"""How the time of a step grows: with the frames of a pulse, with lanes, and with the type of the weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pulse
from bench.measurement.noise import lane_noise, noise_pulses
from bench.measurement.roofline import BandwidthProbe, Machine, roofline, working_set
from bench.measurement.timing import alternate, make_stepper
from bench.models import Entry, catalogue
from bench.models.entry import Source
from pulse.program.native.native_program import NativeProgram

GROWN = ("tcn_1", "gru", "gtcrn")
"""The models whose growth is measured, if no other is given."""

PULSES = (1, 2, 4, 8, 16, 32, 64)
"""Sizes of a pulse, as multiples of the smallest one."""
LANES = (1, 4, 16, 64, 256)
"""Numbers of streams in one call."""
WEIGHTS = ("f32", "bf16", "int8")
"""Types of the weights."""
ROUNDS = 5
"""Rounds in which the variants alternate."""
STEPS = 30
"""Steps of each variant in a round."""


@dataclass(frozen=True)
class Growth:
    """One measurement.

    by        pulse, lanes or weights
    at        the frames of the pulse, the number of lanes, the type of the weights
    us        p50 of a call: all lanes, all frames
    share_us  the same for one frame of one lane
    min_us    the roofline of a call
    """

    title: str
    by: str
    at: str
    us: float
    share_us: float
    min_us: float


@dataclass(frozen=True, eq=False)
class Variant:
    """One program, and how many of its streams step together."""

    by: str
    at: str
    program: NativeProgram
    lanes: int = 1

    def stepper(self, scale: float) -> Callable[[], object]:
        """Return a function that runs a step, of all lanes if there are several."""
        if self.lanes == 1:
            return make_stepper(self.program.spawn().step, noise_pulses(self.program, scale))
        lanes, values = self.program.spawn_many(self.lanes), lane_noise(self.program, self.lanes)
        return lambda: lanes.step(values)


def growth_entries(folder: Path) -> Iterator[Entry]:
    """Yield the models whose growth is measured, except those of missing files."""
    return (entry for entry in catalogue(folder) if entry.key in GROWN)


def growth(entry: Entry, machine: Machine) -> Iterator[Growth]:
    """Yield every measurement of one model; a model of chunks has the pulse of its author."""
    source = entry.source()
    variants = [Variant("weights", weights, _program(entry, source, weights)) for weights in WEIGHTS]
    single = variants[0].program
    if entry.offline:
        entries = [replace(entry, pulse=count * single.model.pulse) for count in PULSES]
        variants += [Variant("pulse", str(grown.pulse), _program(grown, source)) for grown in entries]
    variants += [Variant("lanes", str(count), single, count) for count in LANES]
    readings = [BandwidthProbe(working_set(variant.program, variant.lanes)) for variant in variants]
    steppers = {f"step {index}": variant.stepper(entry.scale) for index, variant in enumerate(variants)}
    steppers |= {f"reading {index}": reading for index, reading in enumerate(readings)}
    timed = alternate(steppers, ROUNDS, STEPS, STEPS)
    for index, (variant, reading) in enumerate(zip(variants, readings)):
        bytes_per_s = reading.bytes / timed.median(f"reading {index}").p50_us * 1e6
        bounds = roofline(variant.program, bytes_per_s, machine.multiply_adds_per_s, variant.lanes)
        us = timed.median(f"step {index}").p50_us
        share_us = us / (variant.lanes * variant.program.model.pulse)
        yield Growth(entry.title, variant.by, variant.at, us, share_us, bounds.min_us)


def _program(entry: Entry, source: Source, weights: str = "f32") -> NativeProgram:
    loaded = pulse.load(source, **entry.arguments)
    program = pulse.stream(loaded, entry.pulse, weights=weights)
    assert isinstance(program, NativeProgram), "the bench runs the numba backend"
    return program
