"""The time to the first result, in separate processes."""

import pytest

from bench.models.entry import Entry
from bench.models.gru import gru

start_times = pytest.importorskip("bench.performance.start_times", exc_type=ImportError)


@pytest.mark.slow
def test_every_start_is_timed_in_a_process_of_its_own() -> None:
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
