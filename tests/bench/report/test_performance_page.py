"""The generated page of performance figures."""

from pathlib import Path
from typing import Any

import pytest

performance_page = pytest.importorskip("bench.report.performance_page", exc_type=ImportError)
results = pytest.importorskip("bench.performance.results", exc_type=ImportError)


@pytest.mark.parametrize(
    "part",
    [
        "| net, 4 | **pulse** | 10.0 | 20.0 | 30.0 | 40.0 | 500.0 |  |  |",
        "|  | onnxruntime, exported | 80.0 | 160.0 | 240.0 | 320.0 | 4000.0 | 8.00 (7.90..8.10) | 6 |",
        "**2.00 (1.90..2.10)**",
        "roofline: arithmetic, 5 kB, 2.0 M multiply-adds",
        "does not stream",
        "| net | 64 | 10 | 1.50 | 13.50 | 9.00 (8.00..10.00) | 0.50 | 6,666 | 740 | unknown |",
        "| 2 MiB | 50 |",
        "| Session.push | 1.50 | 1.25 |",
        "| net | pulse | 4 | 32.0 | 8.00 | 16.0 | 2.0 |",
    ],
)
def test_the_page_has_all_figures(results_of_all: Any, part: str) -> None:
    assert part in performance_page.page(results_of_all)


def test_the_page_names_the_machine(results_of_all: Any) -> None:
    assert str(results_of_all.host) in performance_page.page(results_of_all)


def test_results_from_json_make_the_same_page(results_of_all: Any, tmp_path: Path) -> None:
    results_of_all.write(tmp_path / "out.json")
    read = results.Results.read(tmp_path / "out.json")
    assert performance_page.page(read) == performance_page.page(results_of_all)
