"""The processor's power, read from energy counters."""

from pathlib import Path

import pytest

from bench.measurement import power


def test_power_is_read_from_counters_that_begin_again(tmp_path: Path) -> None:
    assert power.watts(lambda: None, 0.0, tmp_path) is None
    for name, kind in (
        ("intel-rapl:0", "package-0"),
        ("intel-rapl:0:0", "core"),
        ("intel-rapl:1", "package-1"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(f"{kind}\n")
        (tmp_path / name / "max_energy_range_uj").write_text("1000000\n")
        (tmp_path / name / "energy_uj").write_text("990000\n")

    def use() -> None:
        (tmp_path / "intel-rapl:0" / "energy_uj").write_text("10000\n")
        (tmp_path / "intel-rapl:1" / "energy_uj").write_text("992000\n")

    watts = power.watts(use, 0.05, tmp_path, clock=iter([7.0, 7.0, 7.03, 7.06, 7.07]).__next__)
    assert watts == pytest.approx(0.022 / 0.07)  # 20 and 2 mJ from the first reading to the last
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    assert len(power.counters(tmp_path)) == 1
