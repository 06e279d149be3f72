"""``python -m bench.rounding``: one step with f32, bf16 and int8 weights and activations, and the loss of each.

The loss is defined as in ``pulse check``: the error of an output against f32, in dB below it, for noise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pulse
from bench.measurement.noise import noise_pulses
from bench.measurement.timing import Ratio, alternate, make_stepper
from bench.models import Entry, catalogue
from bench.models.choice import make_parser
from pulse.accuracy import rounding_losses
from pulse.program.native.native_program import NativeProgram

TYPES = (("f32", "f32"), ("bf16", "f32"), ("bf16", "bf16"), ("int8", "f32"), ("int8", "int8"))
"""Types of the weights and of the activations."""
KEYS = ("dtln_1", "dtln_2", "gru", "conformer", "seanet_encoder_256")
"""The models of a run without arguments."""
LOSS_FRAMES = 50
"""The pulses over which the loss is computed."""


@dataclass(frozen=True)
class RoundingTime:
    """A model: microseconds of a step and losses in dB by type, and the gain of bf16 activations over f32."""

    title: str
    pulse: int
    us: Mapping[str, float]
    gain: Ratio
    losses_db: Mapping[str, float]


def rounding_times(rounds: int, keys: list[str], folder: Path) -> Iterator[RoundingTime]:
    """Yield the times of each model, except those of missing files."""
    for entry in catalogue(folder):
        if entry.key in (keys or KEYS):
            yield rounding_time(entry, rounds)


def rounding_time(entry: Entry, rounds: int) -> RoundingTime:
    """Time a step with each type, and compare the outputs. Raises CompileError: no product takes rounded rows."""
    pulsed = pulse.load(entry.source(), **entry.arguments).pulsify(entry.pulse)
    steppers, losses_db = {}, {}
    for weights, activations in TYPES:
        program = pulsed.compile(weights=weights, activations=activations)
        assert isinstance(program, NativeProgram), "the bench runs the numba backend"
        name = name_of(weights, activations)
        steppers[name] = make_stepper(program.spawn().step, noise_pulses(program, entry.scale))
        if weights != "f32":
            frames = LOSS_FRAMES * pulsed.pulse
            errors = rounding_losses(pulsed, weights, frames, activations=activations)
            losses_db[name] = min(error.snr_db for error in errors)
    times = alternate(steppers, rounds, steps=200, warmup_steps=200)
    us = {name: times.median(name).p50_us for name in steppers}
    gain = times.ratio(name_of("bf16", "f32"), name_of("bf16", "bf16"))
    return RoundingTime(entry.title, pulsed.pulse, us, gain, losses_db)


def name_of(weights: str, activations: str) -> str:
    """Return the name of a pair of types."""
    return weights if activations == "f32" else f"{weights}, {activations}"


def main() -> None:
    """Print two tables in Markdown."""
    parser = make_parser("bench.rounding", __doc__, rounds=20)
    options = parser.parse_args()
    names = [name_of(*form) for form in TYPES]
    rows = list(rounding_times(options.rounds, options.keys, options.models))
    print(f"| us per step | {' | '.join(names)} | bf16: also activations |")
    print("| --- |" + " ---: |" * (len(names) + 1))
    for row in rows:
        print(f"| {row.title}, {row.pulse} |", *(f"{row.us[name]:.1f} |" for name in names), f"{row.gain} |")
    print(f"\n| loss, dB | {' | '.join(names[1:])} |")
    print("| --- |" + " ---: |" * (len(names) - 1))
    for row in rows:
        print(f"| {row.title} |", *(f"{row.losses_db[name]:.1f} |" for name in names[1:]))


if __name__ == "__main__":
    main()
