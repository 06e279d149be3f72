"""The detector ``Triggers`` in any blocks, against its definition over the whole sequence."""

import numpy as np
import pytest

from pulse.errors import InputError
from streaming.events import Triggers
from tests.failed_cases import in_one_test
from tests.streaming.events.blocks import blocks, walk, whole

HZ = 50


@in_one_test("seed", range(60))
def test_triggers_equal_their_definition_in_any_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frames, classes = int(rng.integers(0, 200)), int(rng.integers(1, 4))
    p = np.stack([walk(rng, frames) for _ in range(classes)], axis=1)
    smooth, rest = int(rng.integers(1, 8)), int(rng.integers(1, 30))
    background = 0 if classes > 1 and rng.integers(2) else None
    labels = [f"word {number}" for number in range(classes)]
    expected, last = [], -rest
    for j in range(frames):
        means = [np.mean(p[max(j + 1 - smooth, 0) : j + 1, k]) for k in range(classes)]
        if background is not None:
            means[background] = -np.inf
        if max(means) >= 0.6 and j - last >= rest:
            last = j
            expected.append((max(j + 1 - smooth, 0) / HZ, (j + 1) / HZ, labels[int(np.argmax(means))]))
    detector = Triggers(
        HZ, 0.6, smooth_s=smooth / HZ, refractory_s=rest / HZ, labels=labels, background=background
    )
    events = whole(detector, p)
    assert [(event.start_s, event.end_s, event.label) for event in events] == expected
    assert all(event.known_s == event.end_s and event.score >= 0.6 for event in events)
    assert blocks(detector, p, seed) == events


def test_triggers_refuse_bad_parameters() -> None:
    with pytest.raises(InputError, match=r"^refractory_s=-1: must be 0 or more seconds$"):
        Triggers(HZ, refractory_s=-1)
    with pytest.raises(InputError, match=r"^labels: 2 names for 3 classes; give one for each$"):
        Triggers(HZ, labels=("a", "b")).push(np.zeros((1, 3)))
    with pytest.raises(InputError, match=r"^background=3: the output has 3 classes, counted from 0$"):
        Triggers(HZ, background=3).push(np.zeros((1, 3)))
