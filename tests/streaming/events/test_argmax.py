"""The detector ``Argmax`` in any blocks, against its definition over the whole sequence."""

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from streaming.events import Argmax
from tests.failed_cases import in_one_test
from tests.streaming.events.blocks import blocks, walk, whole

HZ = 50


def runs_by_definition(p: Array, min_frames: int) -> list[tuple[float | str, ...]]:
    """The runs of a class that are long enough, without repetitions of the class before."""
    best = list(np.argmax(p, axis=1))
    begins = [j for j in range(len(best)) if j == 0 or best[j] != best[j - 1]]
    runs = [(best[a], a, b) for a, b in zip(begins, [*begins[1:], len(best)]) if b - a >= min_frames]
    changes = [run for number, run in enumerate(runs) if number == 0 or run[0] != runs[number - 1][0]]
    ends = [change[1] for change in changes[1:]] + [len(best)]
    return [(a / HZ, b / HZ, str(k), np.mean(p[a:b, k])) for (k, a, _), b in zip(changes, ends)]


@in_one_test("seed", range(80))
def test_argmax_finds_runs_in_any_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.stack([walk(rng, int(seed * 2.5)) for _ in range(rng.integers(1, 5))], axis=1)
    min_frames = int(rng.integers(1, 7))
    detector = Argmax(HZ, min_frames / HZ)
    events = whole(detector, p)
    expected = runs_by_definition(p, min_frames)
    assert [(event.start_s, event.end_s, event.label) for event in events] == [row[:3] for row in expected]
    np.testing.assert_allclose([event.score for event in events], [row[3] for row in expected])
    assert blocks(detector, p, seed) == events


def test_the_background_is_not_reported() -> None:
    p = np.eye(3)[[0, 0, 1, 1, 0, 2]]
    events = whole(Argmax(HZ, labels=("none", "cough", "sneeze"), background=0), p)
    assert [(event.start_s, event.end_s, event.label, event.known_s) for event in events] == [
        (0.04, 0.08, "cough", 0.1),
        (0.1, 0.12, "sneeze", 0.12),
    ]


def test_argmax_refuses_bad_parameters() -> None:
    with pytest.raises(InputError, match=r"^min_s=nan: must be 0 or more seconds$"):
        Argmax(HZ, float("nan"))
    with pytest.raises(InputError, match=r"^labels: 1 name for 2 classes"):
        Argmax(HZ, labels=("a",)).push(np.zeros((1, 2)))
