"""Live runs on a JACK server, each in a separate process; see ``own_process``."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

import pulse
from bench.live.server import JackServer, jack_server
from bench.models.amplifier import amplifier
from streaming import Session
from streaming.audio.channels import Channels
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.hosts.host import DeviceStream
from streaming.hosts.portaudio.portaudio import PortAudio
from streaming.live import EngineConfig, Live, Plan
from streaming.routing import Route
from tests.live.servers import server_or_skip
from tests.live.sound_player import Cassette
from tests.noise import quiet_noise
from tests.streaming.echo_canceller import cancelling_program
from tests.waiting import becomes_true

JACK = "JACK Audio Connection Kit: system"
RATE_HZ = 48_000


@contextmanager
def jack(block: int = 480) -> Generator[JackServer]:
    """A server that this process finds."""
    with server_or_skip(jack_server(RATE_HZ, block)) as server:
        os.environ.update(server.environment)
        yield server


def wait_for_the_rest(live: Live) -> None:
    """Wait until the device has delivered 0.3 s more, so that earlier samples have passed the pipeline."""
    last = live.statistics().counters.frames_in + 3 * RATE_HZ // 10
    assert becomes_true(lambda: live.statistics().counters.frames_in >= last)


def record_run(
    server: JackServer, live: Live, sound: NDArray[np.float32], folder: Path
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Play a recording into a live run through the server; return its input and output [frames, channels]."""
    recorded, played = folder / "heard.wav", folder / "played.wav"
    recorder = live.record(recorded, played)
    cassette = Cassette(sound)
    with live:
        host = PortAudio()
        player = host.open(cassette.request(host.choose("output", JACK), RATE_HZ, server.block_frames))
        player.start()
        inputs = [port for port in server.ports() if port.startswith("PortAudio:in_")]
        source = [port for port in server.ports() if port.startswith("PortAudio:out_")][-1]
        for port in inputs:
            server.connect(source, port)
        cassette.begin()
        assert becomes_true(lambda: cassette.words[2] >= len(sound))
        wait_for_the_rest(live)
        player.stop(1)
    recorder.close()
    assert recorder.frames_lost == 0
    assert not recorder.problems
    return tuple(soundfile.read(path, dtype="float32", always_2d=True)[0] for path in (recorded, played))  # type: ignore[return-value]


def place_of(sound: NDArray[np.float32], within: NDArray[np.float32]) -> int:
    """The offset at which a signal correlates best."""
    size = 1 << (len(within) + len(sound)).bit_length()
    product = np.fft.irfft(np.fft.rfft(within, size) * np.conj(np.fft.rfft(sound, size)), size)
    return int(np.argmax(product[: len(within)]))


def insert_gaps(
    played: NDArray[np.float32], expected: NDArray[np.float32], silent: int
) -> NDArray[np.float32]:
    """The expected sound with silence for late blocks, which a shared machine may cause."""
    if silent == 0:
        return expected[: len(played)]
    sounds, played_at = np.flatnonzero(expected), np.flatnonzero(played)
    late = played_at - sounds[: len(played_at)]  # grows at each gap
    assert late[0] >= 0, late[[0, -1]]
    assert late[-1] <= silent, late[[0, -1]]
    assert np.all(np.diff(late) >= 0), late[[0, -1]]
    gaps = np.zeros_like(played)
    gaps[played_at] = expected[sounds[: len(played_at)]]
    return gaps


def play_exactly(engine: str, pulse_frames: int, block: int) -> None:
    """The played output is bit-identical to offline after the reported delay."""
    program = pulse.stream(amplifier(), pulse=pulse_frames)
    sound = quiet_noise(RATE_HZ)  # it fits itself nowhere else
    with jack(block) as server, tempfile.TemporaryDirectory() as folder:
        plan = Plan(RATE_HZ, JACK, JACK, channels=Channels(0), block_frames=block)
        live = Live(program, plan, EngineConfig(engine=engine, policy="wait"))
        recorded, played = record_run(server, live, sound, Path(folder))
        statistics = live.statistics()
    start = place_of(sound, recorded[:, 0])
    assert np.array_equal(recorded[start : start + len(sound), 0], sound), (
        "what arrived is not what was played"
    )
    session = Session(program)
    shape = [-1 if axis == program.inputs[0].axis else 1 for axis in range(len(program.inputs[0].shape))]
    (offline,) = session.push(recorded[:, 0].reshape(shape)).values()
    silent = statistics.counters.frames_silent
    delay = statistics.delay.frames - silent  # which the policy has added
    assert statistics.counters.frames_lost == 0, statistics.counters
    expected = np.concatenate([np.zeros(delay, np.float32), offline.ravel()])
    for channel in played.T:
        assert np.array_equal(insert_gaps(channel, expected, silent), channel)
    assert np.count_nonzero(played[:, 0]) > 0.9 * len(sound)
    assert silent or place_of(offline.ravel()[: len(sound)], played[:, 0]) == delay
    print(engine, pulse_frames, block, "exact after", delay, "frames", statistics.counters)


def cancel_echo(engine: str, pulse_frames: int) -> None:
    """A model of two inputs records two JACK clients on two channels; outputs equal offline bit by bit."""
    program = cancelling_program(pulse_frames)
    sounds = quiet_noise(RATE_HZ), quiet_noise(RATE_HZ)[::-1].copy()
    with jack() as server, tempfile.TemporaryDirectory() as folder:
        routes = Route("mic", JACK, 0), Route("far", JACK, 1)
        plan = Plan(RATE_HZ, None, JACK, block_frames=480, routes=routes)
        live = Live(program, plan, EngineConfig(engine=engine, policy="wait"))
        paths = Path(folder) / "heard.wav", Path(folder) / "played.wav"
        recorder = live.record(*paths)
        with live:
            host = PortAudio()
            inputs = sorted(port for port in server.ports() if port.startswith("PortAudio:in_"))
            players: list[tuple[Cassette, DeviceStream]] = []
            for sound, port in zip(sounds, inputs):
                cassette, before = Cassette(sound), server.ports()
                player = host.open(
                    cassette.request(host.choose("output", JACK), RATE_HZ, server.block_frames)
                )
                player.start()
                (source,) = (
                    port
                    for port in server.ports()
                    if port not in before and port.startswith("PortAudio:out_")
                )
                server.connect(source, port)
                players.append((cassette, player))
            for cassette, _ in players:
                cassette.begin()
            assert becomes_true(lambda: all(cassette.words[2] >= RATE_HZ for cassette, _ in players))
            wait_for_the_rest(live)
            for _, player in players:
                player.stop(1)
        recorder.close()
        recorded, played = (soundfile.read(path, dtype="float32", always_2d=True)[0] for path in paths)
    counters = live.statistics().counters
    assert recorded.shape[1] == 2
    assert recorder.frames_lost == counters.frames_lost == 0, counters
    for channel, sound in zip(recorded.T, sounds):
        start = place_of(sound, channel)
        assert np.array_equal(channel[start : start + len(sound)], sound), (
            "what arrived is not what was played"
        )
    session, silent = Session(program), counters.frames_silent
    offline = session.push({"mic": recorded[None, :, 0], "far": recorded[None, :, 1]})["out"][0]
    delay = live.statistics().delay.frames - silent
    expected = np.concatenate([np.zeros(delay, np.float32), offline])
    for channel in played.T:
        assert np.array_equal(insert_gaps(channel, expected, silent), channel)
    print(engine, pulse_frames, "two inputs exact after", delay, "frames", counters)


def run_resampled() -> None:
    """A model at 16 kHz on a device at 48 kHz is aligned to a sample after the reported delay."""
    program = pulse.stream(model_path(), pulse=160)
    spectrum = np.fft.rfft(quiet_noise(RATE_HZ))
    spectrum[int(0.7 * SAMPLE_RATE_HZ / RATE_HZ * len(spectrum)) :] = 0
    low = (np.fft.irfft(spectrum, RATE_HZ) * np.hanning(RATE_HZ)).astype(np.float32)
    with jack() as server, tempfile.TemporaryDirectory() as folder:
        live = Live(program, Plan(SAMPLE_RATE_HZ, JACK, JACK, block_frames=480))
        live.control.bypassed = True
        recorded, played = record_run(server, live, low, Path(folder))
        statistics = live.statistics()
    delay, mono = statistics.delay.frames, recorded.mean(axis=1, dtype=np.float32)
    assert place_of(mono, played[:, 0]) == delay
    start = place_of(low, mono) + RATE_HZ // 10  # after the first, soft frames
    sounds = slice(start, start + len(low) - RATE_HZ // 5)
    played_sounds = played[delay:, 0][sounds]
    late = played_sounds == 0  # what came too late is silent, and the rest keeps its place
    assert np.count_nonzero(late) <= statistics.counters.frames_silent < len(late) / 2, statistics.counters
    apart = (played_sounds - mono[sounds])[~late]
    snr_db = 10 * np.log10(np.sum(mono[sounds][~late] ** 2) / np.sum(apart**2))
    print("resampled, delay", delay, "SNR", snr_db)
    assert snr_db > 60


def run_freewheeling() -> None:
    """JACK calls as fast as callbacks return; the callback computes, so nothing can be late."""
    program = pulse.stream(amplifier(), pulse=480)
    with jack() as server:
        plan = Plan(RATE_HZ, JACK, JACK, channels=Channels(0), block_frames=480)
        with Live(program, plan, EngineConfig(engine="callback")) as live:
            server.freewheel(True)
            assert becomes_true(lambda: live.statistics().counters.pulses > 1500, 30)
            server.freewheel(False)
            statistics = live.statistics()
    counters = statistics.counters
    assert counters.frames_silent == counters.frames_lost == 0
    assert counters.pulses >= 1500
    print("freewheel", counters.pulses, "pulses in", statistics.elapsed_s, "s")
