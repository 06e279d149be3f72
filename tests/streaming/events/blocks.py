"""Detectors over whole sequences, and over random blocks."""

import copy
import pickle
from typing import Any

import numpy as np

from pulse.facts import Array
from streaming.events.event import Event


def whole(detector: Any, frames: Array | list[float]) -> list[Event]:
    """The events of a sequence that is pushed at once."""
    detector.reset()
    return detector.push(frames) + detector.flush()


def blocks(detector: Any, frames: Array, seed: int) -> list[Event]:
    """The events of a sequence in random blocks, through copied and pickled detectors."""
    rng = np.random.default_rng(seed)
    detector.reset()
    events, start = [], 0
    while start < len(frames):
        size = int(rng.integers(0, 8))
        events += detector.push(frames[start : start + size])
        start += size
        match rng.integers(4):
            case 0:
                detector = pickle.loads(pickle.dumps(detector))
            case 1:
                detector = copy.deepcopy(detector)
            case 2:
                before = pickle.loads(pickle.dumps(detector.snapshot()))
                detector.push(frames[:5])
                detector.restore(before)
            case _:
                pass
    return events + detector.flush()


def walk(rng: Any, frames: int) -> Array:
    """Random probabilities that rise and fall slowly or by leaps."""
    steps = np.cumsum(rng.normal(0, rng.uniform(0.05, 0.6), frames))
    return 0.5 + 0.5 * np.sin(steps)
