"""A worker thread computes the blocks of a device, here a thread that calls, and leaves nothing running."""

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_int, c_ulong, c_void_p

import numpy as np
import pytest

from pulse.errors import PulseError
from pulse.program.program import Program
from streaming.hosts.host import Endpoint, StreamRequest
from streaming.live import device_call
from streaming.live.config import EngineConfig, StreamConfig
from streaming.live.control import Control
from streaming.live.device_call import DeviceCall
from streaming.live.outputs import Outputs
from streaming.live.pipeline import Pipeline
from streaming.live.worker import Worker
from streaming.realtime.realtime_settings import UNCHANGED
from tests.noise import normal_noise
from tests.streaming.live.manual_device import assert_nothing_left
from tests.streaming.live.runs import BLOCK, RATE, delayed_model, session_outputs, sum_model
from tests.streaming.models import cached_program, filter_model
from tests.waiting import WAIT_TIMEOUT_S, wait_until

FUNCTION_TYPES = c_void_p, c_void_p, c_ulong, c_void_p, c_ulong, c_void_p


def call_of(pipeline: Pipeline) -> DeviceCall:
    """A device's callback of a pipeline."""
    source = Endpoint("device", 0, 1, RATE)
    config = pipeline.stream_config
    return DeviceCall(
        StreamRequest(
            pipeline.callback_address,
            pipeline.address,
            source,
            source,
            config.channels_in,
            config.channels_out,
            RATE,
            BLOCK,
            "low",
            lambda error=None: None,
        )
    )


@contextmanager
def pipeline_with_worker(
    program: Program, **behaviour: bool | int | str
) -> Iterator[tuple[Pipeline, Worker]]:
    pipeline = Pipeline(
        program, StreamConfig(RATE, RATE, RATE, block_frames=BLOCK), EngineConfig(**behaviour)
    )
    worker = Worker(pipeline, UNCHANGED)
    worker.start()
    try:
        yield pipeline, worker
    finally:
        assert worker.stop()
        assert not worker.alive
        pipeline.close()


def wait_for_pulses(pipeline: Pipeline, pulses: int) -> None:
    """Wait until this many pulses have been run."""
    wait_until(lambda: pipeline.control_block.pulses >= pulses, f"{pulses} pulses")


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_every_frame_is_played_in_order(backend: str) -> None:
    """A device that is up to four pulses ahead of the worker: nothing is lost, whatever is late."""
    compiled, x = cached_program(filter_model, backend=backend), normal_noise(300 * BLOCK, 1)
    with assert_nothing_left(), pipeline_with_worker(compiled, policy="wait", records=True) as (pipeline, _):
        call, played = call_of(pipeline), []
        for number, block in enumerate(np.split(x, 300)):
            wait_for_pulses(pipeline, number - 3)
            played.append(call(block)[0])
        wait_for_pulses(pipeline, 300)
        silent = int(pipeline.control_block.frames_silent)
        outputs = Outputs(pipeline)
    (outputs_of_run,), (expected,) = outputs.flush(), session_outputs(compiled, x)
    for name in expected:
        np.testing.assert_array_equal(outputs_of_run[name], expected[name])
    sound = np.concatenate(played)[:, 0]
    audible = sound[sound != 0]
    delay = pipeline.delay_frames - BLOCK
    np.testing.assert_array_equal(audible, expected["y"][0, : len(audible)])
    computed = len(sound) - BLOCK - silent
    assert len(sound) - np.count_nonzero(sound) == BLOCK + silent + min(delay, computed)


@pytest.fixture
def gil_is_held(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold the GIL: threads are not made to release it, and the device's callback keeps it."""
    monkeypatch.setattr(device_call, "FUNCTION", ctypes.PYFUNCTYPE(c_int, *FUNCTION_TYPES))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100 * WAIT_TIMEOUT_S)
    yield
    sys.setswitchinterval(interval)


def test_only_native_pulses_run_while_the_gil_is_held(gil_is_held: None) -> None:
    """Native pulses run from the first block to the last; pulses in Python wait until the GIL is released."""
    x = normal_noise(BLOCK, 1)
    with (
        pipeline_with_worker(cached_program(backend="numpy"), policy="wait") as (python, _),
        pipeline_with_worker(cached_program(backend="numba"), policy="wait") as (native, _),
    ):
        for call in (call_of(python), call_of(native)):
            for _ in range(10):
                call(x)
        until = time.monotonic() + WAIT_TIMEOUT_S
        while native.control_block.pulses < 10 and time.monotonic() < until:
            pass
        assert (native.control_block.pulses, python.control_block.pulses) == (10, 0)
        wait_for_pulses(python, 10)


def test_commands_are_applied_while_the_worker_runs() -> None:
    """A snapshot is of one moment, a restored stream continues from it, another program takes over."""
    x = np.ones((BLOCK, 1), np.float32)
    with pipeline_with_worker(cached_program(sum_model)) as (pipeline, _):
        control, call = Control(pipeline), call_of(pipeline)
        control.running = True
        for number in range(50):
            call(x)
            if number == 20:
                wait_for_pulses(pipeline, 21)
                snapshots = control.snapshot()
        wait_for_pulses(pipeline, 50)
        state = cached_program(sum_model).spawn()
        state.restore(snapshots[0])
        assert state.step(x.T)["y"][0, 0] == 21 * BLOCK + 1
        control.restore(snapshots)
        call(x)
        wait_for_pulses(pipeline, 51)
        assert pipeline.instances.structs[0].pulses_run == 22
        control.reset()
        control.swap(cached_program(sum_model), prime_s=0.02)
        for _ in range(4):
            call(x)
        wait_for_pulses(pipeline, 55)
        assert not control.is_swapping


def test_commands_wake_the_worker_if_no_device_calls() -> None:
    with pipeline_with_worker(cached_program(delayed_model), reserve_frames=50) as (pipeline, _):
        control = Control(pipeline)
        control.running = True
        for _ in range(50):
            control.restore(control.snapshot())
            control.reset()
        assert pipeline.control_block.load_count == 100


def test_a_program_in_python_that_fails_ends_the_worker() -> None:
    compiled = cached_program(sum_model, backend="numpy")
    with pipeline_with_worker(compiled) as (pipeline, worker):

        def fail(slots):
            raise ValueError("out of order")

        pipeline.instances.run = fail
        call_of(pipeline)(normal_noise(BLOCK, 1))
        wait_until(lambda: worker.error, "the worker's error")
        assert str(worker.error) == "out of order"


def test_a_worker_that_cannot_begin_reports_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(options):
        raise PulseError("no such thing")

    monkeypatch.setattr("streaming.live.worker.apply_to_thread", refuse)
    with pipeline_with_worker(cached_program()) as (_, worker):
        assert str(worker.error) == "no such thing"


def test_a_stop_of_a_worker_has_a_timeout() -> None:
    """While a pulse does not end, the thread lives on and ``stop`` returns False."""
    compiled, holds, continues = (
        cached_program(sum_model, backend="numpy"),
        threading.Event(),
        threading.Event(),
    )
    pipeline = Pipeline(compiled, StreamConfig(RATE, RATE, RATE, block_frames=BLOCK), EngineConfig())
    worker = Worker(pipeline, UNCHANGED)

    def hold(slots):
        holds.set()
        continues.wait()

    pipeline.instances.run = hold
    worker.start()
    call_of(pipeline)(normal_noise(BLOCK, 1))
    assert holds.wait(60)
    assert not worker.stop(0.02)
    assert worker.alive
    continues.set()
    assert worker.stop(60)
    pipeline.close()
