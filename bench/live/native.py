"""The design of this project: a compiled callback and a compiled worker; Python only reads the statistics."""

import time

import numpy as np

from bench.live.design import Outcome, Setup
from pulse.errors import PulseError
from streaming.audio.channels import Channels
from streaming.live import EngineConfig, Live, Plan
from streaming.realtime import UNCHANGED, Realtime

POLL_S = 0.2
"""Seconds between two readings of the times of pulses."""


def run_worker(setup: Setup) -> Outcome:
    """Run a native thread with real-time priority and a block of headroom."""
    return _run(setup, EngineConfig(records=True), Realtime())


def run_plain_worker(setup: Setup) -> Outcome:
    """Run the same thread without real-time priority or any other request to the system."""
    return _run(setup, EngineConfig(records=True), UNCHANGED)


def run_callback(setup: Setup) -> Outcome:
    """Compute in the callback, without headroom."""
    return _run(setup, EngineConfig(engine="callback", records=True), Realtime())


def _run(setup: Setup, engine_config: EngineConfig, realtime: Realtime) -> Outcome:
    plan = Plan(
        setup.rate_hz,
        setup.device,
        setup.device,
        channels=Channels(0),
        device_rate_hz=setup.rate_hz,
        block_frames=setup.block_frames,
    )
    times = list[tuple[int, int]]()
    with Live(setup.program, plan, engine_config, realtime) as live:
        until = time.monotonic() + setup.seconds
        while time.monotonic() < until and not live.wait(POLL_S):
            times += ((record.arrived_ns, record.ready_ns) for record in live.pipeline.take_records())
        counters = live.statistics().counters
    if live.outputs.pulses_lost:
        raise PulseError(f"the times of {live.outputs.pulses_lost} pulses were not taken in time")
    silent = -(-counters.frames_silent // setup.block_frames)
    measured = np.array(times, np.int64).reshape(-1, 2)
    return Outcome(measured, setup.block_s, counters.frames_in // setup.block_frames, silent, counters.xruns)
