"""Reports of the figures: tables, JSON, the page, the picture, and the list of missed targets."""

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench import power
from bench.calls import MACHINE, CallTime, call_times
from bench.host import Host
from bench.models.entry import Entry, Target
from bench.models.gru import gru
from bench.roofline import Machine, Roofline
from bench.timing import Percentiles, Ratio

results = pytest.importorskip("bench.results", exc_type=ImportError)
docs = pytest.importorskip("bench.performance_page", exc_type=ImportError)
report = pytest.importorskip("bench.report", exc_type=ImportError)


def timed_row(factor: float, tail: float = 1.0) -> Any:
    us = Percentiles(*(10.0 * factor * step for step in (1, 2, 3, 4 * tail, 50)))
    return results.RuntimeTimes(
        "exported", us, Ratio(factor, factor - 0.1, factor + 0.1), Ratio(tail, tail, tail)
    )


@pytest.fixture
def results_of_all() -> Any:
    runtimes = {"pulse": timed_row(1.0), "onnxruntime": timed_row(8.0), "tract": timed_row(2.0, 0.25)}
    forms = [
        {"runtime": "tract", "how": "exported", "status": "right", "note": ""},
        {"runtime": "tract", "how": "pulsed by tract", "status": "wrong", "note": "off by 1.0e+00"},
    ]
    least = Roofline(5_000, 9_000, 2_000_000, 1.0, 5.0)
    row = results.Row(
        "net", "net", 4, 100.0, runtimes, forms, least, Target(onnxruntime=6, tract=3, roofline=1.3)
    )
    other = replace(row, key="two", title="two", runtimes={**runtimes, "onnxruntime": timed_row(2.0)})
    broken = results.Row("bad", "bad", 1, 1.0, error="does not stream")
    machine = Machine(((1 << 14, 100e9), (1 << 21, 50e9)), 40e9)
    lanes = [results.LanesRow("net", 64, 10.0, 1.5, 13.5, 6666.0, 740.0, Ratio(9.0, 8.0, 10.0), 0.5)]
    starts = [results.Start("net, 4", "pulse, program file", 0.5, 0.25)]
    growth = [
        results.Growth("net", by, str(at), 8.0 * at, 8.0, 4.0 * at)
        for by in ("pulse", "lanes")
        for at in (1, 4)
    ]
    calls = [CallTime("Session.push", 1.5, 1.25)]
    return results.Results(Host.here(), machine, 3, 20, [row, other, broken], lanes, starts, growth, calls)


def test_means_are_geometric_and_over_the_models_that_ran(results_of_all) -> None:
    assert results_of_all.mean("onnxruntime") == pytest.approx(4.0)
    assert results_of_all.mean("tract") == pytest.approx(2.0)


def test_targets_are_compared(results_of_all) -> None:
    reached = {title: good for title, _, _, good in results_of_all.rows[0].target_results()}
    assert reached == {"onnxruntime": True, "tract": False, "roofline": False}


def test_missed_targets_are_listed(results_of_all) -> None:
    lines = list(report.missed_targets(results_of_all))
    assert "net, 4 against tract: 2.00 instead of 3" in lines
    assert any("p99.9 of tract is 0.25 (0.25..0.25) times ours" in line for line in lines)
    assert not any("net, 4 against onnxruntime" in line for line in lines)


def test_wrong_forms_are_reported(results_of_all) -> None:
    assert "net, 4: tract, pulsed by tract: wrong, off by 1.0e+00" in list(
        report.untimed_forms(results_of_all)
    )


def test_results_are_read_back_from_json(results_of_all, tmp_path) -> None:
    results_of_all.write(tmp_path / "out.json")
    assert docs.page(results.Results.read(tmp_path / "out.json")) == docs.page(results_of_all)


def test_the_page_has_all_figures(results_of_all) -> None:
    text = docs.page(results_of_all)
    assert str(results_of_all.host) in text
    assert "| net, 4 | **pulse** | 10.0 | 20.0 | 30.0 | 40.0 | 500.0 |  |  |" in text
    assert (
        "|  | onnxruntime, exported | 80.0 | 160.0 | 240.0 | 320.0 | 4000.0 | 8.00 (7.90..8.10) | 6 |" in text
    )
    assert "**2.00 (1.90..2.10)**" in text
    assert "least: arithmetic, 5 kB, 2.0 M multiply-adds" in text
    assert "does not stream" in text
    assert "| net | 64 | 10 | 1.50 | 13.50 | 9.00 (8.00..10.00) | 0.50 | 6,666 | 740 | unknown |" in text
    assert "| 2 MiB | 50 |" in text
    assert "| Session.push | 1.50 | 1.25 |" in text
    assert "| net | pulse | 4 | 32.0 | 8.00 | 16.0 | 2.0 |" in text


@pytest.mark.parametrize(
    "words", ["8.00 (7.90..8.10)", "does not stream", "against tract, 2 models: 2.00", "6,666"]
)
def test_the_terminal_has_the_tables(results_of_all, words) -> None:
    out = io.StringIO()
    report.show(results_of_all, Console(file=out, width=200))
    assert words in out.getvalue()


def test_the_calls_are_timed() -> None:
    rows = call_times(rounds=3, count=5)
    assert [row.name for row in rows] == [MACHINE, "State.step_into", "State.step", "Session.push"]
    assert all(row.us > 0 for row in rows)
    assert rows[0].over_us == 0


def test_the_picture_is_drawn(results_of_all, tmp_path) -> None:
    plot = pytest.importorskip("bench.plot", exc_type=ImportError)
    plot.draw(results_of_all, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_the_summary_names_the_slowest_models(results_of_all) -> None:
    assert list(results_of_all.summary()) == [
        "geometric mean against onnxruntime, 2 models: 4.00; least 2.00, two",
        "geometric mean against tract, 2 models: 2.00; least 2.00, net",
        "times the roofline: geometric mean 2.00; most 2.00, net",
    ]


def test_growth_is_measured_by_pulse_lanes_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = pytest.importorskip("bench.growth", exc_type=ImportError)
    monkeypatch.setattr(growth, "PULSES", (1, 3))
    monkeypatch.setattr(growth, "LANES", (1, 2))
    monkeypatch.setattr(growth, "STEPS", 3)
    machine = Machine(((1 << 14, 100e9),), 40e9)
    rows = list(growth.growth(Entry("gru", "GRU", 1, lambda: gru(16, 1)), machine))
    at = [(row.by, row.at) for row in rows]
    assert at == [("weights", kind) for kind in growth.WEIGHTS] + [
        ("pulse", "1"),
        ("pulse", "3"),
        ("lanes", "1"),
        ("lanes", "2"),
    ]
    three, two = rows[4], rows[6]
    assert three.share_us == pytest.approx(three.us / 3)
    assert two.share_us == pytest.approx(two.us / 2)
    assert all(row.min_us > 0 for row in rows)


def test_the_picture_of_growth_is_drawn(results_of_all, tmp_path) -> None:
    plot = pytest.importorskip("bench.plot", exc_type=ImportError)
    plot.draw_growth(results_of_all, tmp_path / "out.svg")
    assert b"roofline" in (tmp_path / "out.svg").read_bytes()


def test_lanes_equal_separate_states_and_are_counted() -> None:
    lanes = pytest.importorskip("bench.stream_lanes", exc_type=ImportError)
    entry = Entry("gru", "GRU", 1, lambda: gru(16, 1), rate_hz=100.0)
    machine = Machine(((1 << 14, 100e9),), 40e9)
    rows = list(lanes.lanes_rows(entry, machine, (1, 3), 2))
    assert [row.lanes for row in rows] == [1, 3]
    for row in rows:
        assert row.streams_per_core == pytest.approx(1e4 / row.us_per_stream)
        assert 0 < row.min_us < row.us_per_stream
        assert row.pulse_ms == 10


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


def test_streams_per_watt_are_unknown_without_a_power_counter(results_of_all) -> None:
    (row,) = results_of_all.lanes
    assert row.streams_per_watt is None
    assert [line[-1] for line in report.lanes_lines(results_of_all.lanes)] == ["unknown"]
    results = replace(results_of_all, lanes=[replace(row, watts=60.6)])
    assert [line[-1] for line in report.lanes_lines(results.lanes)] == ["110"]


def test_an_unknown_model_is_named() -> None:
    process = subprocess.run([sys.executable, "-m", "bench", "nothing"], capture_output=True, text=True)
    assert process.returncode == 2
    assert "no model is called nothing; there are denoiser, tcn_1" in process.stderr


@pytest.mark.slow
def test_starts_in_processes_of_their_own() -> None:
    start_times = pytest.importorskip("bench.start_times", exc_type=ImportError)
    entry = Entry("gru", "GRU", 1, lambda: gru(16, 1))
    results_of_all = {row.runtime: row for row in start_times.starts([entry], cold=False, rounds=1)}
    assert {"pulse, model file, kernels carried", "pulse, model file, kernels compiled before"} & set(
        results_of_all
    )
    assert {name for name in results_of_all if "model file" not in name} == {
        "numpy alone",
        "pulse run",
        "pulse, program file",
        "onnxruntime, its own optimised .onnx file",
        "onnxruntime, its own optimised .ort file",
        "onnxruntime, exported",
        "tract, exported",
    }
    assert all(row.seconds > 0 and row.cpu_s > 0 for row in results_of_all.values())
