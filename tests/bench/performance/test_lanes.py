"""The measurement of many streams on one core."""

import pytest

from bench.measurement.roofline import Machine
from bench.models.entry import Entry
from bench.models.gru import gru

lanes = pytest.importorskip("bench.performance.lanes", exc_type=ImportError)


def test_lanes_equal_separate_states_and_are_counted() -> None:
    entry = Entry("gru", "GRU", 1, lambda: gru(16, 1), rate_hz=100.0)
    machine = Machine(((1 << 14, 100e9),), 40e9)
    rows = list(lanes.lanes_rows(entry, machine, (1, 3), 2))
    assert [row.lanes for row in rows] == [1, 3]
    for row in rows:
        assert row.streams_per_core == pytest.approx(1e4 / row.us_per_stream)
        assert 0 < row.min_us < row.us_per_stream
        assert row.pulse_ms == 10
