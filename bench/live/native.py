"""The design of this project: a compiled callback and a compiled worker; Python only looks on."""

from bench.live.design import Outcome, Setup
from streaming.channels import Channels
from streaming.live import Behaviour, Live, Plan
from streaming.realtime import NOTHING, Realtime


def on_a_worker(setup: Setup) -> Outcome:
    """A native thread with real-time priority computes; a block of headroom."""
    return _run(setup, Behaviour(), Realtime())


def on_a_plain_worker(setup: Setup) -> Outcome:
    """The same without priority, and with nothing else asked of the system."""
    return _run(setup, Behaviour(), NOTHING)


def in_the_callback(setup: Setup) -> Outcome:
    """The callback computes; no headroom."""
    return _run(setup, Behaviour(engine="callback"), Realtime())


def _run(setup: Setup, behaviour: Behaviour, realtime: Realtime) -> Outcome:
    plan = Plan(
        setup.rate_hz,
        setup.device,
        setup.device,
        channels=Channels(0),
        device_rate_hz=setup.rate_hz,
        block_frames=setup.block_frames,
    )
    with Live(setup.program, plan, behaviour, realtime) as live:
        live.wait(setup.seconds)
        account = live.account()
    counters = account.counters
    silent = -(-counters.frames_silent // setup.block_frames)
    return Outcome(account.total, counters.frames_in // setup.block_frames, silent, counters.xruns)
