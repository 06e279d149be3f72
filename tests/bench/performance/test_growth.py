"""The growth of a step with frames, lanes and the type of weights."""

import pytest

from bench.measurement.roofline import Machine
from bench.models.entry import Entry
from bench.models.gru import gru

growth = pytest.importorskip("bench.performance.growth", exc_type=ImportError)


def test_growth_is_measured_by_pulse_lanes_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "PULSES", (1, 3))
    monkeypatch.setattr(growth, "LANES", (1, 2))
    monkeypatch.setattr(growth, "STEPS", 3)
    machine = Machine(((1 << 14, 100e9),), 40e9)
    rows = list(growth.growth(Entry("gru", "GRU", 1, lambda: gru(16, 1)), machine))
    at = [(row.by, row.at) for row in rows]
    assert at == [("weights", weights) for weights in growth.WEIGHTS] + [
        ("pulse", "1"),
        ("pulse", "3"),
        ("lanes", "1"),
        ("lanes", "2"),
    ]
    three, two = rows[4], rows[6]
    assert three.share_us == pytest.approx(three.us / 3)
    assert two.share_us == pytest.approx(two.us / 2)
    assert all(row.min_us > 0 for row in rows)
