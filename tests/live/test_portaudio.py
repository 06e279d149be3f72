"""The real PortAudio in this process, on a JACK server."""

import json
from collections.abc import Generator

import pytest

from bench.live.server import JackServer, jack_server
from pulse.errors import InputError
from streaming.errors import DeviceError
from streaming.hosts.devices import choose_device
from streaming.hosts.host import Endpoint
from streaming.hosts.portaudio import portaudio
from streaming.hosts.portaudio.portaudio import PortAudio
from tests.live.counting_callback import CALLS, END_AT, FRAMES, TIMED, counters, request
from tests.live.servers import server_or_skip, use_server
from tests.streaming.command import pulse, report
from tests.waiting import becomes_true

NAME = "JACK Audio Connection Kit: system"
RATE, BLOCK = 48000, 480


@pytest.fixture(scope="module")
def server() -> Generator[JackServer]:
    with server_or_skip(jack_server(RATE, BLOCK)) as server, use_server(server):
        yield server


@pytest.fixture
def host(server: JackServer) -> PortAudio:
    return PortAudio()


@pytest.fixture
def ends(host: PortAudio) -> tuple[Endpoint, Endpoint]:
    return host.choose("input", NAME), host.choose("output", NAME)


def test_devices_are_described(host: PortAudio) -> None:
    assert host.native
    device = choose_device(host.devices(), "input", "KIT: SYS")
    assert (device.title, device.inputs, device.outputs, device.default_rate_hz) == (NAME, 2, 2, RATE)
    assert 0 < device.low_output_latency_s <= device.high_output_latency_s < 0.1
    devices = host.devices()
    assert host.refresh()
    assert host.devices() == devices
    with pytest.raises(InputError, match=r"unknown device 'nothing'; choose by index or name: \d+ "):
        host.choose("output", "nothing")


def test_an_open_stream_describes_itself_and_waits(host: PortAudio, ends: tuple[Endpoint, Endpoint]) -> None:
    stream = host.open(request(counters(), *ends))
    assert (stream.active, stream.note) == (False, None)
    assert 0 <= stream.input_latency_s < 0.1
    assert 0 < stream.output_latency_s < 0.1
    assert stream.stop(2.0)


def test_a_stream_is_active_from_its_start_to_its_stop(
    host: PortAudio, ends: tuple[Endpoint, Endpoint]
) -> None:
    words = counters()
    stream = host.open(request(words, *ends))
    stream.start()
    assert becomes_true(lambda: words[CALLS] >= 10)
    assert (stream.active, stream.is_lost) == (True, False)
    assert stream.stop(2.0)
    assert (stream.active, stream.is_lost) == (False, False)


def test_each_call_of_a_stream_has_a_block_and_its_time(
    host: PortAudio, ends: tuple[Endpoint, Endpoint]
) -> None:
    words = counters()
    stream = host.open(request(words, *ends))
    stream.start()
    assert becomes_true(lambda: words[CALLS] >= 10)
    assert stream.stop(2.0)
    assert words[FRAMES] == BLOCK * words[CALLS]
    assert words[TIMED] == words[CALLS]


def test_a_callback_ends_its_stream(host: PortAudio, ends: tuple[Endpoint, Endpoint]) -> None:
    words, ended = counters(), []
    words[END_AT] = 7
    stream = host.open(request(words, *ends, finished=lambda: ended.append(1)))
    stream.start()
    assert becomes_true(lambda: ended)
    assert becomes_true(lambda: not stream.active)
    assert not stream.is_lost
    assert stream.stop(2.0)
    assert words[CALLS] == 7
    assert len(ended) == 1


@pytest.mark.parametrize("frames", [0, 64, 1000])
def test_a_call_has_the_frames_of_a_block(
    host: PortAudio, ends: tuple[Endpoint, Endpoint], frames: int
) -> None:
    words = counters()
    stream = host.open(request(words, *ends, block_frames=frames))
    stream.start()
    assert becomes_true(lambda: words[CALLS] >= 5)
    assert stream.stop(2.0)
    assert words[FRAMES] == (frames or BLOCK) * words[CALLS]


def test_streams_of_one_direction_run_side_by_side(host: PortAudio, ends: tuple[Endpoint, Endpoint]) -> None:
    recorded, played = counters(), counters()
    streams = [
        host.open(request(recorded, ends[0], None)),
        host.open(request(played, None, ends[1], channels=1)),
    ]
    for stream in streams:
        stream.start()
    assert becomes_true(lambda: min(recorded[CALLS], played[CALLS]) >= 5)
    assert all(stream.stop(2.0) for stream in streams)


def test_time_runs_free(server: JackServer, host: PortAudio, ends: tuple[Endpoint, Endpoint]) -> None:
    words = counters()
    stream = host.open(request(words, *ends))
    stream.start()
    server.freewheel(True)
    try:
        assert becomes_true(lambda: words[CALLS] > 2000)
    finally:
        server.freewheel(False)
    assert stream.stop(2.0)


def test_requests_that_a_device_refuses_are_refused(host: PortAudio, ends: tuple[Endpoint, Endpoint]) -> None:
    with pytest.raises(DeviceError, match=f"^{NAME}: does not run at 44100 Hz; use one of 48000 Hz$"):
        host.open(request(counters(), *ends, rate_hz=44100))
    with pytest.raises(
        DeviceError, match="5 input and 5 output channels were requested, it has 2 and 2; use fewer"
    ):
        host.open(request(counters(), *ends, channels=5))
    with pytest.raises(InputError, match="latency 'tiny': give low, high or seconds"):
        host.open(request(counters(), *ends, latency="tiny"))


def test_refreshing_leaves_open_streams_alone(host: PortAudio, ends: tuple[Endpoint, Endpoint]) -> None:
    words = counters()
    stream = host.open(request(words, *ends))
    stream.start()
    assert host.refresh()
    assert any(device.name == "PortAudio" for device in host.devices()), "the client of the open stream"
    calls = words[CALLS]
    assert becomes_true(lambda: words[CALLS] > calls + 5)
    assert stream.stop(2.0)
    assert host.refresh()
    assert all(device.name != "PortAudio" for device in host.devices())


def test_to_release_closes_streams(
    server: JackServer, host: PortAudio, ends: tuple[Endpoint, Endpoint]
) -> None:
    words = counters()
    stream = host.open(request(words, *ends))
    stream.start()
    assert becomes_true(lambda: words[CALLS] > 0)
    portaudio.release()
    assert not any(port.startswith("PortAudio") for port in server.ports())
    assert stream.stop(1.0)
    assert not stream.active
    assert NAME in [device.title for device in host.devices()]


def test_the_command_lists_the_devices(server: JackServer) -> None:
    assert NAME.partition(": ")[2] in pulse("devices").stdout
    listed = report("devices")["devices"]
    assert [device["name"] for device in listed] == [device.name for device in PortAudio().devices()]
    assert json.dumps(listed)
