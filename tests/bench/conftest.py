"""Results of the bench with round figures; the float mode of the process."""

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bench.measurement.host import Host
from bench.measurement.roofline import Machine, Roofline
from bench.measurement.timing import Percentiles, Ratio
from bench.models.entry import Target


@pytest.fixture(autouse=True)
def usual_float_mode() -> Iterator[None]:
    """Restore denormal numbers: a first session of onnxruntime that flushes them leaves its thread in that mode."""
    yield
    if sys.float_info.min / 2 == 0:
        default_environment = ctypes.c_void_p(-1)  # FE_DFL_ENV
        ctypes.CDLL(None).fesetenv(default_environment)
    assert sys.float_info.min / 2


@pytest.fixture
def results_of_all() -> Any:
    """Two models that run, one that does not, and a row of each other measurement."""
    results = pytest.importorskip("bench.performance.results", exc_type=ImportError)
    steps = pytest.importorskip("bench.performance.steps", exc_type=ImportError)

    def timed_row(factor: float, tail: float = 1.0) -> Any:
        us = Percentiles(*(10.0 * factor * step for step in (1, 2, 3, 4 * tail, 50)))
        return steps.RuntimeTimes(
            "exported", us, Ratio(factor, factor - 0.1, factor + 0.1), Ratio(tail, tail, tail)
        )

    runtimes = {"pulse": timed_row(1.0), "onnxruntime": timed_row(8.0), "tract": timed_row(2.0, 0.25)}
    forms = [
        {"runtime": "tract", "how": "exported", "status": "right", "note": ""},
        {"runtime": "tract", "how": "pulsed by tract", "status": "wrong", "note": "off by 1.0e+00"},
    ]
    roofline = Roofline(5_000, 9_000, 2_000_000, 1.0, 5.0)
    row = steps.StepRow(
        "net", "net", 4, 100.0, runtimes, forms, roofline, Target(onnxruntime=6, tract=3, roofline=1.3)
    )
    other = replace(row, key="two", title="two", runtimes={**runtimes, "onnxruntime": timed_row(2.0)})
    broken = steps.StepRow("bad", "bad", 1, 1.0, error="does not stream")
    machine = Machine(((1 << 14, 100e9), (1 << 21, 50e9)), 40e9)
    lanes = [results.LanesRow("net", 64, 10.0, 1.5, 13.5, 6666.0, 740.0, Ratio(9.0, 8.0, 10.0), 0.5)]
    starts = [results.Start("net, 4", "pulse, program file", 0.5, 0.25)]
    growth = [
        results.Growth("net", by, str(at), 8.0 * at, 8.0, 4.0 * at)
        for by in ("pulse", "lanes")
        for at in (1, 4)
    ]
    calls = [results.CallTime("Session.push", 1.5, 1.25)]
    return results.Results(Host.here(), machine, 3, 20, [row, other, broken], lanes, starts, growth, calls)
