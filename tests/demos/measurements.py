"""What a live demo prints about its run."""

import re

import pytest


def assert_measured(report: str) -> None:
    """What was measured is what was reported, and that is not nothing."""
    reported = int(re.search(r"reported +(\d+) frames", report)[1])
    measured = float(re.search(r"measured +([\d.]+) frames: agrees", report)[1])
    assert reported > 100
    assert measured == pytest.approx(reported, abs=0.5)
