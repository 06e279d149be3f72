"""All that is accepted in a long life is played, and every frame is accounted for.

The sound at the end is where it belongs, and neither threads, descriptors nor memory grow.
"""

from pathlib import Path

import pytest

from streaming.live.config import ENGINES
from tests.streaming.live.long_life import FAULTS, POLICIES, RunSequence


@pytest.mark.parametrize(
    ("minutes", "seed"),
    [(1.5, 1), pytest.param(30, 2, marks=pytest.mark.slow)],
    ids=["short", "half an hour"],
)
def test_many_runs_with_problems_lose_no_frame_and_no_memory(
    minutes: float, seed: int, tmp_path: Path
) -> None:
    life = RunSequence(seed, tmp_path)
    life.run_until(minutes * 60)
    third = len(life.memory_mb) // 3
    before_mb, after_mb = min(life.memory_mb[third : 2 * third]), min(life.memory_mb[2 * third :])
    speed = life.virtual_s / life.busy_s
    print(f"\n{life.virtual_s / 60:.1f} minutes at {speed:.0f} times real time: {dict(life.reached)}")
    print(f"memory: {before_mb:.0f} MB in the middle, {after_mb:.0f} MB at the end")
    assert after_mb < before_mb + 16
    expected = {
        *POLICIES,
        *ENGINES,
        *FAULTS,
        "keep",
        "reset",
        "reopened",
        "silent",
        "same as offline",
        "threads",
    }
    assert not [kind for kind in expected if not life.reached[kind]]
    if minutes >= 30:
        assert life.reached["cancelled"]
        assert life.reached["lost"]
