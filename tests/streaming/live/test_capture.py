"""A device that is recorded without a model, and does not return."""

import numpy as np
import pytest

from streaming.live import capture as capture_module
from streaming.live.capture import Capture
from tests.streaming.live.manual_device import ManualHost
from tests.streaming.live.runs import RATE, noise

BLOCK = 160


def new():
    """One that is open, and its host."""
    host = ManualHost()
    capture = Capture(host, host.choose("input", None), 1, RATE, BLOCK, "low")
    capture.open()
    return host, capture


def test_blocks_come_in_order():
    host, capture = new()
    x = noise(3 * BLOCK, 1)
    for block in np.split(x, 3):
        host.stream(block)
    np.testing.assert_array_equal(capture.read(), x)
    assert capture.close() and capture.close()


@pytest.mark.parametrize("times", [1, 2])
def test_a_device_that_is_inside_of_a_block_for_ever(times):
    """It may still write, so its memory and its event stay, however often it is closed."""
    host, capture = new()
    host.stream.hangs = True
    abandoned = [*capture_module.abandoned_captures]
    for _ in range(times):
        assert not capture.close()
    assert capture_module.abandoned_captures == [*abandoned, capture]
    assert not capture.event.closed
    host.stream(noise(BLOCK, 1))
    assert len(capture.read()) == BLOCK
    capture_module.abandoned_captures.remove(capture)
    capture.event.close()
