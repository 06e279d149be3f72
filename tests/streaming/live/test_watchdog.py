"""A device that goes away is noticed, reported, and opened again; the sound continues where it was."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError, PulseError
from streaming.errors import DeviceError
from streaming.live import Live, Plan
from streaming.live import live as live_module
from streaming.live.plan import TEARDOWN_TIMEOUT_S
from streaming.live.watchdog import FREQUENT_RETRIES_S, MAX_EVENTS, RARE_RETRY_S, RETRY_S
from streaming.realtime.realtime_settings import UNCHANGED
from streaming.virtual.host import VirtualDevice, VirtualHost
from tests.noise import normal_noise
from tests.streaming.live.runs import (
    BLOCK,
    RATE,
    assert_frames_add_up,
    delayed_model,
    engines,
    late_by,
    played_by,
    runs,
    sum_model,
)
from tests.streaming.models import cached_program, filter_model
from tests.waiting import wait_until

FAULTS = {
    "stalls": {"stalled": True},
    "vanishes": {"present": False},
    "hangs": {"stalled": True, "hangs": True},
    "ends": {},
}


def disturb(host: VirtualHost, kind: str) -> None:
    """Patch the device with this behaviour until ``recover`` undoes it."""
    device = host.devices[0]
    for name, value in FAULTS[kind].items():
        setattr(device, name, value)
    if kind == "ends":
        device.refuses = "not ready yet"
        host.finish()


def recover(host: VirtualHost) -> None:
    device = host.devices[0]
    device.stalled, device.present, device.hangs, device.refuses = False, True, False, None


def wait_until_open(host: VirtualHost) -> None:
    """Let time pass until the device is open again."""

    def is_open() -> bool:
        if not host.streams:
            host.advance(0.1)
        return bool(host.streams)

    wait_until(is_open, "the device is open again")


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("block", [160, 8000])
def test_a_device_that_goes_away_ends_the_run(kind: str, block: int) -> None:
    """The error comes within two seconds and has the name, the cause and a remedy."""
    device = VirtualDevice("usb mixer", rate_hz=RATE)
    with (
        pytest.raises(DeviceError, match="usb mixer: the device ") as refusal,
        runs(cached_program(), block=block, device=device) as (host, live),
    ):
        host.run(normal_noise(10 * block))
        assert not live.wait(0)
        disturb(host, kind)
        since_ns = host.now_ns()
        while not live.watchdog.has_ended:
            host.advance(0.05)
        passed_s = (host.now_ns() - since_ns) / 1e9
        assert passed_s < 2 + (TEARDOWN_TIMEOUT_S if kind == "hangs" else 0)
        assert live.watchdog.error is not None, "what ended the run is reported before the device is stopped"
        statistics = live.statistics()
        assert statistics.counters.stalls == 1
    assert ("ended by itself" if kind == "ends" else "has not called for 1.") in str(refusal.value)
    assert "reconnect" in str(refusal.value)
    abandoned = "it does not respond; abandoned"
    assert any(abandoned in note for note in statistics.notes) == (kind == "hangs")


def test_the_end_is_reported_before_the_device_is_stopped() -> None:
    with pytest.raises(DeviceError, match="has not called"), runs(cached_program()) as (host, live):
        stop, errors = live.devices.stop, []

        def record_and_stop(limit_s: float) -> bool:
            errors.append(live.watchdog.error)
            return stop(limit_s)

        live.devices.stop = record_and_stop
        disturb(host, "hangs")
        host.advance(1.2)
        assert isinstance(errors[0], DeviceError)


@pytest.mark.parametrize("reconnect", ["keep", "reset"])
def test_no_device_is_opened_while_another_is_in_a_block(reconnect: str) -> None:
    with (
        pytest.raises(DeviceError, match="has not returned from a block"),
        runs(cached_program(), reconnect=reconnect) as (host, live),
    ):
        disturb(host, "hangs")
        host.devices[0].in_callback = True
        host.advance(5)
        assert live.watchdog.has_ended
        assert not host.streams
        assert live.statistics().counters.reopened == 0
    assert live_module.abandoned_pipelines.pop() is live.pipeline
    live.pipeline.close()


def test_late_and_long_blocks_are_not_a_stall() -> None:
    """Blocks that are 0.9 s late or last 0.6 s are not reported."""
    with runs(cached_program()) as (host, live):
        for _ in range(5):
            host.tick(normal_noise(BLOCK, 1), late_s=0.9)
        assert live.statistics().counters.stalls == 0
    with runs(cached_program(), block=9600) as (host, live):
        host.run(normal_noise(10 * 9600))
        assert live.statistics().counters.stalls == 0


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("make", [sum_model, filter_model, delayed_model])
@pytest.mark.parametrize("block", [160, 100])
def test_the_model_continues_after_a_reconnection(kind: str, make: Callable[..., Any], block: int) -> None:
    """The model's output equals the output for the whole input."""
    compiled, x = cached_program(make), normal_noise(60 * block, 1)
    with runs(compiled, block=block, reconnect="keep", records=True) as (host, live):
        played = [host.run(x[: 25 * block])]
        disturb(host, kind)
        assert not len(host.run(normal_noise(400 * block, 1))), "a device that is away plays nothing"
        recover(host)
        wait_until_open(host)
        played.append(host.run(x[25 * block :]))
        counters, delay = live.statistics().counters, live.delay.frames
        assert_frames_add_up(live, len(x))
        assert (counters.frames_silent, counters.reopened) == (0, counters.stalls)
        assert counters.stalls == 1 or kind in ("stalls", "hangs"), "those can be opened again and again"
        assert "opened again" in live.statistics().notes[-1]
    expected = played_by(compiled, x, "y")
    np.testing.assert_array_equal(np.concatenate(played), late_by(expected, delay, len(x)))
    np.testing.assert_array_equal(live.outputs.flush()[0]["y"][0], expected[:, 0])


@engines
@pytest.mark.parametrize("make", [sum_model, delayed_model])
@pytest.mark.parametrize("block", [160, 100])
def test_reset_restarts_the_model_after_a_reconnection(
    engine: str, make: Callable[..., Any], block: int
) -> None:
    """The model restarts with the next pulse, which begins with the rest of the input from before."""
    compiled, x = cached_program(make), normal_noise(60 * block, 1)
    with runs(compiled, block=block, reconnect="reset", engine=engine) as (host, live):
        played = [host.run(x[: 25 * block])]
        disturb(host, "vanishes")
        host.advance(5)
        recover(host)
        wait_until_open(host)
        played.append(host.run(x[25 * block :]))
        model_delay_frames, delay = live.pipeline.model_delay_frames, live.delay.frames
        assert live.statistics().counters.frames_silent == 0
    first = 25 * block // 160 * 160
    sound = [
        late_by(played_by(compiled, part, "y"), model_delay_frames, len(part))
        for part in (x[:first], x[first:])
    ]
    expected = late_by(np.concatenate(sound), delay - model_delay_frames, len(x))
    np.testing.assert_array_equal(np.concatenate(played), expected)


def test_a_renumbered_device_is_found_by_its_name() -> None:
    first, other = VirtualDevice("first", rate_hz=RATE), VirtualDevice("usb mixer", rate_hz=RATE)
    host = VirtualHost(first, other)
    plan = Plan(RATE, input="mixer", output="mixer", block_frames=BLOCK)
    with Live(cached_program(), plan, realtime=UNCHANGED, reconnect="keep", host=host) as live:
        host.run(normal_noise(BLOCK, 1))
        other.present = False
        host.advance(2.0)
        host.devices = (VirtualDevice("new", rate_hz=RATE), first, other)
        other.present = True
        host.advance(RETRY_S + 0.1)
        assert live.statistics().counters.reopened == 1
        assert host.streams[0].device is other


def test_a_device_that_stays_away_is_tried_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is reported once, and the device is opened as soon as it is back."""
    with runs(cached_program(), reconnect="keep") as (host, live):
        tries = []
        monkeypatch.setattr(host, "refresh", lambda: tries.append(host.now_ns()) or True)
        disturb(host, "vanishes")
        host.advance(FREQUENT_RETRIES_S)
        often = len(tries)
        assert often == pytest.approx(FREQUENT_RETRIES_S / RETRY_S, abs=5)
        host.advance(600)
        assert len(tries) - often == pytest.approx(600 / RARE_RETRY_S, abs=2)
        assert ["not opened yet" in note for note in live.statistics().notes] == [False, True]
        recover(host)
        host.devices[0].refuses = "somebody else has it"
        host.advance(RARE_RETRY_S + 0.1)
        assert "somebody else has it" in live.statistics().notes[-1]
        recover(host)
        wait_until_open(host)
        assert live.statistics().counters.reopened == 1
        host.run(normal_noise(BLOCK, 1))
        disturb(host, "vanishes")
        host.advance(2.0)
        recover(host)
        host.advance(RETRY_S + 0.1)
        assert live.statistics().counters.reopened == 2, "another time it is tried often again"


def test_a_device_that_opens_but_does_not_call_is_tried_rarely() -> None:
    with runs(cached_program(), reconnect="keep") as (host, live):
        disturb(host, "stalls")
        host.advance(FREQUENT_RETRIES_S)
        often = live.statistics().counters.reopened
        assert often > 20
        host.advance(600)
        assert live.statistics().counters.reopened - often == pytest.approx(600 / RARE_RETRY_S, abs=2)


def test_the_number_of_kept_events_is_limited() -> None:
    with runs(cached_program(), reconnect="keep") as (host, live):
        for _ in range(MAX_EVENTS):
            host.run(normal_noise(BLOCK, 1))
            disturb(host, "ends")
            recover(host)
            host.advance(0.2)
            wait_until_open(host)
        counters = live.statistics().counters
        assert (counters.stalls, counters.reopened) == (MAX_EVENTS, MAX_EVENTS)
        assert len(live.statistics().notes) == MAX_EVENTS


@engines
def test_commands_are_applied_while_the_device_is_away(engine: str) -> None:
    """No thread computes while the device is away."""
    with runs(cached_program(sum_model), reconnect="keep", engine=engine) as (host, live):
        host.run(np.ones((10 * BLOCK, 1), np.float32))
        disturb(host, "stalls")
        host.advance(1.5)
        saved = live.control.snapshot()
        live.control.reset()
        live.control.restore(saved)
        recover(host)
        host.advance(1.0)
        played = host.run(np.ones((10 * BLOCK, 1), np.float32))
        assert played[-1] == 20 * BLOCK - live.delay.frames


def test_invalid_watchdog_settings_are_refused() -> None:
    with pytest.raises(InputError, match='reconnect="often": choose keep or reset, or omit it'):
        Live(cached_program(), Plan(RATE), realtime=UNCHANGED, reconnect="often", host=VirtualHost())
    assert issubclass(DeviceError, PulseError)
