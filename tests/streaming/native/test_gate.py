"""Between a device and a pipeline: open, shut, and shut while someone is inside."""

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


def test_blocks_go_through_until_it_is_shut() -> None:
    calls: list[tuple[Any, ...]] = []

    def pipeline(*arguments: Any) -> int:
        calls.append(arguments)
        return COMPLETE if len(calls) == 2 else CONTINUE

    function = FUNCTION(pipeline)
    gate = Gate(address_of(function), USER, 2)
    device = FUNCTION(stream_callback.address)
    samples_in, played = np.ones(6, np.float32), np.ones(8, np.float32)
    block = (samples_in.ctypes.data, played.ctypes.data, 3, 99, 5, gate.address)
    assert device(*block) == CONTINUE
    assert not gate.has_ended
    assert calls == [(*block[:5], USER)]
    assert device(*block) == COMPLETE
    assert gate.has_ended
    assert gate.callbacks == 2
    assert gate.shut(1.0)
    assert gate.shut(1.0)
    assert played.all()
    assert device(*block) == ABORT
    np.testing.assert_array_equal(played, [0] * 6 + [1] * 2)
    assert device(samples_in.ctypes.data, None, 3, 99, 5, gate.address) == ABORT
    assert len(calls) == 2
    assert gate.callbacks == 4


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
