"""The gate between a device and a pipeline: open, shut, and shut during a callback."""

import ctypes
import threading
from ctypes import c_void_p
from typing import Any

import numpy as np

from streaming.native.callback_signature import ABORT, COMPLETE, CONTINUE, FUNCTION
from streaming.native.gate import Gate, stream_callback

USER = 4242


def address_of(function: Any) -> int:
    address = ctypes.cast(function, c_void_p).value
    assert address is not None
    return address


class CountingPipeline:
    """A pipeline that records the arguments of its callbacks, and the gate before it.

    codes  the results of the callbacks, in turn
    """

    def __init__(self, *codes: int) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._codes = iter(codes)
        self._function = FUNCTION(self._run)
        self.gate = Gate(address_of(self._function), USER, 2)
        self.device = FUNCTION(stream_callback.address)
        self.samples_in, self.played = np.ones(6, np.float32), np.ones(8, np.float32)
        self.block = (self.samples_in.ctypes.data, self.played.ctypes.data, 3, 99, 5, self.gate.address)

    def _run(self, *arguments: Any) -> int:
        self.calls.append(arguments)
        return next(self._codes)


def test_an_open_gate_calls_the_pipeline_with_its_user_data() -> None:
    pipeline = CountingPipeline(CONTINUE)
    assert pipeline.device(*pipeline.block) == CONTINUE
    assert pipeline.calls == [(*pipeline.block[:5], USER)]
    assert not pipeline.gate.has_ended


def test_a_complete_pipeline_ends_the_gate() -> None:
    pipeline = CountingPipeline(CONTINUE, COMPLETE)
    assert [pipeline.device(*pipeline.block) for _ in range(2)] == [CONTINUE, COMPLETE]
    assert pipeline.gate.has_ended
    assert pipeline.gate.callbacks == 2


def test_a_shut_gate_aborts_and_plays_silence() -> None:
    """A gate may be shut twice; it writes the frames of its two channels and no more."""
    pipeline = CountingPipeline(COMPLETE)
    pipeline.device(*pipeline.block)
    assert pipeline.gate.shut(1.0)
    assert pipeline.gate.shut(1.0)
    assert pipeline.played.all()
    assert pipeline.device(*pipeline.block) == ABORT
    np.testing.assert_array_equal(pipeline.played, [0] * 6 + [1] * 2)


def test_a_shut_gate_needs_no_output_and_counts_callbacks() -> None:
    pipeline = CountingPipeline(CONTINUE)
    pipeline.device(*pipeline.block)
    assert pipeline.gate.shut(1.0)
    samples_in = pipeline.block[0]
    assert pipeline.device(*pipeline.block) == ABORT
    assert pipeline.device(samples_in, None, 3, 99, 5, pipeline.gate.address) == ABORT
    assert len(pipeline.calls) == 1
    assert pipeline.gate.callbacks == 3


def test_shut_waits_for_running_callbacks() -> None:
    inside, go = threading.Event(), threading.Event()

    def pipeline(*arguments: Any) -> int:
        inside.set()
        go.wait(60)
        return CONTINUE

    function = FUNCTION(pipeline)
    gate = Gate(address_of(function), USER, 0)
    device = FUNCTION(stream_callback.address)
    thread = threading.Thread(target=device, args=(None, None, 3, None, 0, gate.address))
    thread.start()
    assert inside.wait(60)
    assert not gate.shut(0.01)
    go.set()
    assert gate.shut(60.0)
    thread.join()
