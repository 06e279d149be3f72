"""The generated page of performance figures."""

import pytest

performance_page = pytest.importorskip("bench.report.performance_page", exc_type=ImportError)
results = pytest.importorskip("bench.performance.results", exc_type=ImportError)


def test_the_page_has_all_figures(results_of_all) -> None:
    text = performance_page.page(results_of_all)
    assert str(results_of_all.host) in text
    assert "| net, 4 | **pulse** | 10.0 | 20.0 | 30.0 | 40.0 | 500.0 |  |  |" in text
    assert (
        "|  | onnxruntime, exported | 80.0 | 160.0 | 240.0 | 320.0 | 4000.0 | 8.00 (7.90..8.10) | 6 |" in text
    )
    assert "**2.00 (1.90..2.10)**" in text
    assert "roofline: arithmetic, 5 kB, 2.0 M multiply-adds" in text
    assert "does not stream" in text
    assert "| net | 64 | 10 | 1.50 | 13.50 | 9.00 (8.00..10.00) | 0.50 | 6,666 | 740 | unknown |" in text
    assert "| 2 MiB | 50 |" in text
    assert "| Session.push | 1.50 | 1.25 |" in text
    assert "| net | pulse | 4 | 32.0 | 8.00 | 16.0 | 2.0 |" in text


def test_results_from_json_make_the_same_page(results_of_all, tmp_path) -> None:
    results_of_all.write(tmp_path / "out.json")
    read = results.Results.read(tmp_path / "out.json")
    assert performance_page.page(read) == performance_page.page(results_of_all)
