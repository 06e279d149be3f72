"""Real threads: a worker computes what a device, here a thread that calls, gives; nothing is left behind."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from pulse.errors import PulseError
from streaming.hosts.host import Endpoint, Order
from streaming.live.control import Control
from streaming.live.device_call import DeviceCall
from streaming.live.form import Behaviour, Form
from streaming.live.line import Line
from streaming.live.outputs import Outputs
from streaming.live.worker import Worker
from streaming.native import line_words as w
from streaming.realtime.options import NOTHING
from tests.streaming.live.by_hand import nothing_left
from tests.streaming.live.runs import BLOCK, RATE, late, noise, ready, running, streamed
from tests.streaming.small import filtered


def call_of(line):
    """What a device calls."""
    source = Endpoint("device", 0, 1, RATE)
    form = line.form
    return DeviceCall(
        Order(
            line.callback_address,
            line.address,
            source,
            source,
            form.channels_in,
            form.channels_out,
            RATE,
            BLOCK,
            "low",
            lambda error=None: None,
        )
    )


@contextmanager
def working(made, **behaviour):
    """A line and its worker."""
    line = Line(made, Form(RATE, RATE, RATE, block_frames=BLOCK), Behaviour(**behaviour))
    worker = Worker(line, NOTHING)
    worker.start()
    try:
        yield line, worker
    finally:
        assert worker.stop()
        assert not worker.alive
        line.close()


def settled(line, pulses):
    """Wait until so many pulses have been run."""
    until = time.monotonic() + 10
    while line.words[w.PULSES] < pulses:
        assert time.monotonic() < until, f"{line.words[w.PULSES]} of {pulses} pulses in 10 s"
        time.sleep(0.0005)


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_every_frame_comes_out_in_order(backend):
    """A device that calls every millisecond, ten times as fast as its sound: nothing is lost, whatever is late."""
    made, x = ready(filtered, backend=backend), noise(300 * BLOCK, 1)
    with nothing_left(), working(made, policy="wait", records=True) as (line, _):
        call, played = call_of(line), []
        for block in np.split(x, 300):
            played.append(call(block)[0])
            time.sleep(0.001)
        settled(line, 300)
        silent = int(line.words[w.FRAMES_SILENT])
        outputs = Outputs(line)
    (found,), (wanted,) = outputs.flush(), streamed(made, x)
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name])
    sound = np.concatenate(played)[:, 0]
    heard = sound[sound != 0]
    delay = line.delay_frames - BLOCK
    np.testing.assert_array_equal(heard, wanted["y"][0, : len(heard)])
    computed = len(sound) - BLOCK - silent
    assert len(sound) - np.count_nonzero(sound) == BLOCK + silent + min(delay, computed)


def test_python_may_compute_elsewhere_meanwhile():
    """A pure Python loop holds the interpreter; pulses are run all the same."""
    stops = threading.Event()

    def busy():
        number = 0
        while not stops.is_set():
            number += 1

    with working(ready(), policy="wait") as (line, _):
        call, x = call_of(line), noise(BLOCK, 1)
        hog = threading.Thread(target=busy)
        hog.start()
        try:
            for _ in range(10):
                call(x)
            settled(line, 10)
        finally:
            stops.set()
            hog.join()


def test_orders_while_it_works():
    """A snapshot is of one moment, a restored stream goes on from it, another program takes over."""
    x = np.ones((BLOCK, 1), np.float32)
    with working(ready(running)) as (line, _):
        control, call = Control(line), call_of(line)
        control.running = True
        for number in range(50):
            call(x)
            if number == 20:
                settled(line, 21)
                snapshots = control.snapshot()
        settled(line, 50)
        state = ready(running).spawn()
        state.restore(snapshots[0])
        assert state.step(x.T)["y"][0, 0] == 21 * BLOCK + 1
        control.restore(snapshots)
        call(x)
        settled(line, 51)
        assert line.instances.words[0, w.RAN] == 22
        control.reset()
        control.swap(ready(running), prime_s=0.02)
        for _ in range(4):
            call(x)
        settled(line, 55)
        assert not control.swapping


def test_orders_where_no_device_calls():
    """The worker wakes for them."""
    with working(ready(late), reserve_frames=50) as (line, _):
        control = Control(line)
        control.running = True
        for _ in range(50):
            control.restore(control.snapshot())
            control.reset()
        assert line.words[w.LOADS] == 100


def test_a_program_in_python_that_fails_ends_the_worker():
    made = ready(running, backend="numpy")
    with working(made) as (line, worker):

        def fail(slots):
            raise ValueError("out of order")

        line.instances.run = fail
        call_of(line)(noise(BLOCK, 1))
        until = time.monotonic() + 5
        while worker.error is None and time.monotonic() < until:
            time.sleep(0.001)
        assert str(worker.error) == "out of order"


def test_a_worker_that_cannot_begin_says_why(monkeypatch):
    def refuse(options):
        raise PulseError("no such thing")

    monkeypatch.setattr("streaming.live.worker.on_this_thread", refuse)
    with working(ready()) as (_, worker):
        assert str(worker.error) == "no such thing"


def test_stopping_is_bounded():
    """A pulse that does not end keeps the thread, and says so."""
    made, holds, goes_on = ready(running, backend="numpy"), threading.Event(), threading.Event()
    line = Line(made, Form(RATE, RATE, RATE, block_frames=BLOCK), Behaviour())
    worker = Worker(line, NOTHING)

    def hold(slots):
        holds.set()
        goes_on.wait()

    line.instances.run = hold
    worker.start()
    call_of(line)(noise(BLOCK, 1))
    assert holds.wait(5)
    assert not worker.stop(0.02) and worker.alive
    goes_on.set()
    assert worker.stop(5)
    line.close()
