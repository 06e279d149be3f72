"""The plots of performance results."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def plot() -> Any:
    """The module, imported late: matplotlib takes long, and not every process draws."""
    return pytest.importorskip("bench.report.plot", exc_type=ImportError)


def test_the_picture_is_drawn(plot: Any, results_of_all: Any, tmp_path: Path) -> None:
    plot.draw(results_of_all, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_of_growth_is_drawn(plot: Any, results_of_all: Any, tmp_path: Path) -> None:
    plot.draw_growth(results_of_all, tmp_path / "out.svg")
    assert b"roofline" in (tmp_path / "out.svg").read_bytes()
