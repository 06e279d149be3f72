"""Seeded noise, the input of timed steps."""

import numpy as np

from pulse.facts import Array
from pulse.program.program import Program

NOISE_PULSES = 64
"""Pulses of noise that the steps of a program cycle through."""


def noise_pulses(program: Program, scale: float) -> list[dict[str, Array]]:
    """Return seeded noise, ``NOISE_PULSES`` pulses of every input: normal, of integers and booleans 0 and 1.

    An input without frames has one value in all of them.
    """
    rng = np.random.default_rng(0)
    values: dict[str, Array] = {}
    for port in program.inputs:
        shape = (NOISE_PULSES if port.streams else 1, *port.shape)
        drawn = (
            scale * rng.standard_normal(shape)
            if np.dtype(port.dtype).kind == "f"
            else rng.integers(0, 2, shape)
        )
        values[port.name] = np.broadcast_to(drawn.astype(port.dtype), (NOISE_PULSES, *port.shape))
    return [
        {name: np.ascontiguousarray(array[pulse]) for name, array in values.items()}
        for pulse in range(NOISE_PULSES)
    ]


def lane_noise(program: Program, count: int) -> Array:
    """Return a pulse of noise for each lane of a program with one input."""
    (port,) = [port for port in program.inputs if port.streams]
    return np.random.default_rng(0).standard_normal((count, *port.shape)).astype(np.float32)
