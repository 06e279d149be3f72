"""The results of ``python -m bench``: means, targets, and a summary."""

from typing import Any

import pytest


def test_means_are_geometric_and_over_the_models_that_ran(results_of_all: Any) -> None:
    assert results_of_all.mean("onnxruntime") == pytest.approx(4.0)
    assert results_of_all.mean("tract") == pytest.approx(2.0)


def test_targets_are_compared(results_of_all: Any) -> None:
    reached = {title: good for title, _, _, good in results_of_all.rows[0].target_results()}
    assert reached == {"onnxruntime": True, "tract": False, "roofline": False}


def test_the_summary_names_the_slowest_models(results_of_all: Any) -> None:
    assert list(results_of_all.summary()) == [
        "geometric mean against onnxruntime, 2 models: 4.00; lowest 2.00, two",
        "geometric mean against tract, 2 models: 2.00; lowest 2.00, net",
        "times the roofline: geometric mean 2.00; highest 2.00, net",
    ]
