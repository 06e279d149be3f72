"""Captures of a device without a model, also of a device that never returns."""

import numpy as np
import pytest

from streaming.live import capture as capture_module
from streaming.live.capture import Capture
from tests.noise import normal_noise
from tests.streaming.live.manual_device import ManualHost
from tests.streaming.live.runs import RATE

BLOCK = 160


def open_capture() -> tuple[ManualHost, Capture]:
    """A host and an open capture on it."""
    host = ManualHost()
    capture = Capture(host, host.choose("input", None), 1, RATE, BLOCK, "low")
    capture.open()
    return host, capture


def test_captured_blocks_come_in_order() -> None:
    host, capture = open_capture()
    x = normal_noise(3 * BLOCK, 1)
    for block in np.split(x, 3):
        host.stream(block)
    np.testing.assert_array_equal(capture.read(), x)
    assert capture.close()
    assert capture.close()


@pytest.mark.parametrize("times", [1, 2])
def test_a_stuck_device_keeps_the_memory_of_its_capture(times: int) -> None:
    """The device may still write to it, so its event stays open too, however often the capture is closed."""
    host, capture = open_capture()
    host.stream.hangs = True
    abandoned = [*capture_module.abandoned_captures]
    for _ in range(times):
        assert not capture.close()
    assert capture_module.abandoned_captures == [*abandoned, capture]
    assert not capture.event.closed
    host.stream(normal_noise(BLOCK, 1))
    assert len(capture.read()) == BLOCK
    capture_module.abandoned_captures.remove(capture)
    capture.event.close()
