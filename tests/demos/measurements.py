"""The report that a live demo prints about its run."""

import re

import pytest


def assert_measured(report: str) -> None:
    """Assert that the report has measurements."""
    reported = int(re.search(r"reported +(\d+) frames", report)[1])
    measured = float(re.search(r"measured +([\d.]+) frames: agrees", report)[1])
    assert reported > 100
    assert measured == pytest.approx(reported, abs=0.5)
