"""The virtual device: its clock, its blocks, and its failures."""

from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError
from streaming.errors import DeviceError
from streaming.hosts.host import Endpoint, StreamRequest
from streaming.virtual.host import VirtualDevice, VirtualHost
from tests.noise import normal_noise
from tests.streaming.live.runs import BLOCK, RATE, fields, runs, virtual_run
from tests.streaming.models import cached_program


def test_time_passes_by_blocks_and_by_command() -> None:
    x = normal_noise(10 * BLOCK, 1)
    with runs(cached_program()) as (host, live):
        begun_ns = host.now_ns()
        host.run(x)
        assert host.now_ns() - begun_ns == 100_000_000
        assert fields(live).virtual_now_ns == host.now_ns()
        host.advance(0.25)
        host.run(x, 80)
        assert host.now_ns() - begun_ns == 450_000_000
        host.tick(x[:BLOCK], late_s=0.004)
        assert host.now_ns() - begun_ns == 464_000_000
        host.tick(x[:BLOCK])
        assert host.now_ns() - begun_ns == 470_000_000, "in time again"
        assert live.statistics().counters.callbacks == 10 + 20 + 2


def test_jitter_is_the_same_every_time() -> None:
    def intervals_ns():
        times_ns = []
        with runs(cached_program(), device=VirtualDevice(rate_hz=RATE, jitter_s=0.005)) as (host, _):
            for _ in range(20):
                host.tick(normal_noise(BLOCK, 1))
                times_ns.append(host.now_ns())
        return np.diff(times_ns)

    first = intervals_ns()
    np.testing.assert_array_equal(intervals_ns(), first)
    assert 4_000_000 < np.ptp(first) < 10_000_000


def test_blocks_may_have_any_size_that_fits_the_sound() -> None:
    with runs(cached_program(), block=0, engine="callback") as (host, live):
        played = host.run(np.ones((100, 1), np.float32), [7, 30])
        assert live.statistics().counters.callbacks == 6
        assert len(played) == 100
        with pytest.raises(InputError, match="100 frames are not a multiple of the block size 30"):
            host.run(np.ones(100, np.float32), 30)
        with pytest.raises(InputError, match="block size 0; give blocks of other sizes"):
            host.run(np.ones(100, np.float32))
        with pytest.raises(InputError, match="2\\) for 1 channels"):
            host.run(np.ones((100, 2), np.float32), 50)


def test_a_host_without_an_open_device_cannot_run() -> None:
    with pytest.raises(InputError, match="no virtual device is open: begin a live run on this host"):
        VirtualHost().run(normal_noise(100))


def test_a_device_is_chosen_by_number_or_name() -> None:
    host = VirtualHost(
        VirtualDevice("Mic one", 1, 0), VirtualDevice("Mic two", 2, 0), VirtualDevice("Ear", 0, 2)
    )
    assert host.choose("input", None) == Endpoint("Mic one", 0, 1, 48000)
    assert host.choose("input", "two") == host.choose("input", 1) == Endpoint("Mic two", 1, 2, 48000)
    assert host.choose("output", None).name == "Ear"
    with pytest.raises(InputError, match="'mic' may be any of 2 devices"):
        host.choose("input", "mic")
    host.devices[0].present = False
    assert host.choose("input", "mic").index == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"refuses": "it is in use by another program"}, "cannot be opened, it is in use by another program"),
        ({"rates_hz": (44100, 48000)}, "does not run at 16000 Hz but at 44100, 48000"),
        ({"present": False}, "cannot be opened, it is no longer available"),
    ],
)
def test_unopenable_devices_are_refused_with_the_reason(change: dict[str, Any], message: str) -> None:
    host, live = virtual_run(cached_program())
    for name, value in change.items():
        setattr(host.devices[0], name, value)
    with pytest.raises(DeviceError, match=message), live:
        pass
    assert host.streams == ()


def test_time_passes_without_sound_while_a_device_is_stalled() -> None:
    """Time passes without sound; a moment later it continues."""
    x = np.arange(1, 20 * BLOCK + 1, dtype=np.float32)
    with runs(cached_program(), engine="callback") as (host, live):
        (device,) = host.devices
        first = host.run(x[: 5 * BLOCK])
        device.stalled = True
        assert len(host.run(x[5 * BLOCK : 10 * BLOCK])) == 0
        device.stalled = False
        second = host.run(x[10 * BLOCK :])
        assert live.statistics().interval.max_s == pytest.approx(0.06)
    np.testing.assert_array_equal(first[:, 0], x[: 5 * BLOCK])
    np.testing.assert_array_equal(second[:, 0], x[10 * BLOCK :])


def test_a_stopped_pipeline_ends_the_stream() -> None:
    """A pipeline that stops answers that all is played; the device says that it has ended."""
    ended = []
    with runs(cached_program()) as (host, live):
        (stream,) = host.streams
        assert isinstance(stream.request, StreamRequest)
        object.__setattr__(stream.request, "finished", lambda error=None: ended.append(error))
        live.pipeline.control_block.stop = 1
        assert len(host.run(normal_noise(2 * BLOCK, 1))) == BLOCK
        assert ended == [None]
        assert not stream.calls


def test_the_next_run_keeps_the_clock_and_resets_counters() -> None:
    host = VirtualHost(VirtualDevice(rate_hz=RATE))
    from streaming.live import EngineConfig, Live, Plan
    from streaming.realtime.realtime_settings import UNCHANGED

    for _ in range(3):
        with Live(cached_program(), Plan(RATE), EngineConfig(), UNCHANGED, host=host) as live:
            host.run(normal_noise(5 * BLOCK, 1))
            assert live.statistics().elapsed_s == pytest.approx(0.05)
        assert host.streams == ()
    assert host.now_ns() == 1_150_000_000


def test_a_stall_delays_the_running_pulse() -> None:
    """A pulse that is under way when nothing may be computed is ready later by that time."""
    with runs(cached_program(), compute_s=0.004, policy="wait") as (host, live):
        host.run(normal_noise(BLOCK, 1))
        host.advance(0.001)
        host.stall(0.01)
        host.advance(0.0129)
        assert fields(live).pulses == 0
        host.advance(0.0002)
        assert fields(live).pulses == 1
        assert live.statistics().compute.max_s == pytest.approx(0.014)
