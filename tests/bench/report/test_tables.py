"""The tables in the terminal, missed targets, and forms that were not timed."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

tables = pytest.importorskip("bench.report.tables", exc_type=ImportError)


def test_missed_targets_are_listed(results_of_all: Any) -> None:
    lines = list(tables.missed_targets(results_of_all))
    assert "net, 4 against tract: 2.00 instead of 3" in lines
    assert any("p99.9 of tract is 0.25 (0.25..0.25) times ours" in line for line in lines)
    assert not any("net, 4 against onnxruntime" in line for line in lines)


def test_wrong_forms_are_reported(results_of_all: Any) -> None:
    assert "net, 4: tract, pulsed by tract: wrong, off by 1.0e+00" in list(
        tables.untimed_forms(results_of_all)
    )


@pytest.mark.parametrize(
    "words", ["8.00 (7.90..8.10)", "does not stream", "against tract, 2 models: 2.00", "6,666"]
)
def test_the_terminal_has_the_tables(results_of_all: Any, words: list[str]) -> None:
    out = io.StringIO()
    tables.show(results_of_all, Console(file=out, width=200))
    assert words in out.getvalue()


def test_streams_per_watt_are_unknown_without_a_power_counter(results_of_all: Any) -> None:
    (row,) = results_of_all.lanes
    assert row.streams_per_watt is None
    assert [line[-1] for line in tables.lanes_lines(results_of_all.lanes)] == ["unknown"]
    results = replace(results_of_all, lanes=[replace(row, watts=60.6)])
    assert [line[-1] for line in tables.lanes_lines(results.lanes)] == ["110"]
