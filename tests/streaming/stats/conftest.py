"""The statistics file of a simulated run."""

from pathlib import Path

import pytest

from streaming.stats.live_statistics import LiveStatistics


@pytest.fixture
def path(tmp_path: Path, series: list[LiveStatistics]) -> Path:
    """The statistics of ``series``, of which each file of tests has its own."""
    from tests.streaming.stats.simulated_statistics import write

    return write(tmp_path / "out.jsonl", series)
