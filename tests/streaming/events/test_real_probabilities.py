"""The probabilities of a published model on speech, by the rules of its authors."""

from itertools import pairwise

import numpy as np
import pytest

from streaming.events import Segments
from tests.shared import shared_path
from tests.streaming.events.blocks import blocks, whole

RULES = [Segments(100, min_silence_s=0.1), Segments.silero(100), Segments.fireredvad(100)]


@pytest.mark.parametrize("detector", RULES, ids=["plain", "silero", "fireredvad"])
def test_events_of_real_probabilities_ignore_blocks(detector: Segments) -> None:
    p = np.load(shared_path("sound/fireredvad_en.npz"))["out"][0]
    events = whole(detector, p)
    assert events
    assert all(0 <= event.start_s < event.end_s <= len(p) / 100 for event in events)
    assert all(first.end_s <= other.start_s for first, other in pairwise(events))
    for seed in range(5):
        assert blocks(detector, p, seed) == events
