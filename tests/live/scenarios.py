"""Failures of servers while streams run, each in a separate process; see ``own_process``."""

import atexit
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.live.server import JackServer, Server, jack_server, run
from pulse.errors import InputError
from streaming.errors import DeviceError
from streaming.hosts.portaudio import portaudio
from streaming.hosts.portaudio.portaudio import PortAudio
from streaming.live.watchdog import STALL_TIMEOUT_S
from tests.live.counting_callback import CALLS, END_AT, FLAGS, TIMED, counters, request
from tests.live.own_process import LIMIT_S
from tests.live.servers import pulse_server, server_or_skip
from tests.waiting import becomes_true

JACK = "JACK Audio Connection Kit: system"
BACK_S = 8.0
"""The time limit until a stream is back after its server or device."""
FIRST_S = 30.0
"""The time limit until a new server makes its first callbacks beside other processes."""


class Player:
    """A stream that is open and counts its callbacks."""

    def __init__(self, source: str, target: str, native: bool = True) -> None:
        self.host = PortAudio(native)
        self.names = source, target
        self.finished = 0
        self.words: NDArray[np.int64] = counters()
        if not self.comes_back(FIRST_S):  # a stream of a server that is still starting may never be called
            raise DeviceError("the first stream does not open, or is not called")
        self.finished = 0

    def open(self, limit_s: float = STALL_TIMEOUT_S) -> None:
        """Open it, with a new count. Raises DeviceError: it does not call in time, and is closed again."""
        self.words = counters()
        source, target = self.host.choose("input", self.names[0]), self.host.choose("output", self.names[1])
        self.stream = self.host.open(request(self.words, source, target, latency=0.04, finished=self._finish))
        self.stream.start()
        if not self.runs(limit_s=limit_s):
            self.stream.stop(1.0)
            raise DeviceError("no callbacks")

    def _finish(self) -> None:
        self.finished += 1

    def runs(self, calls: int = 20, limit_s: float = 5.0) -> bool:
        """Whether the callback is called this many times within the limit."""
        before = self.words[CALLS]
        return becomes_true(lambda: self.words[CALLS] >= before + calls, limit_s)

    def is_still(self) -> bool:
        """Whether the callback is not called for 0.1 s."""
        return not self.runs(1, 0.1)

    def comes_back(self, limit_s: float = BACK_S) -> bool:
        """Whether the stream returns by refreshing and opening, as the watchdog does."""

        def can_open() -> bool:
            if not self.host.refresh():
                return False
            try:
                self.open()
            except (DeviceError, InputError):
                return False
            return True

        return becomes_true(can_open, limit_s)

    def is_away(self) -> bool:
        """Whether a refreshed list lacks the devices."""
        assert self.host.refresh()
        return all(self.names[0] != device.title for device in self.host.devices())


@contextmanager
def _jack() -> Generator[JackServer]:
    with server_or_skip(jack_server()) as server:
        os.environ.update(server.environment)
        yield server


@contextmanager
def _pulse() -> Generator[Server]:
    with server_or_skip(pulse_server()) as server:
        os.environ.update(server.environment)
        yield server


def _exit() -> None:
    """Let sounddevice leave while the server runs: without a server it aborts the process."""
    atexit._run_exitfuncs()


def jack_killed() -> None:
    """After each death of the server no call hangs, and the stream returns with the server."""
    with _jack() as server:
        player = Player(JACK, JACK)
        descriptors = []
        for _ in range(2):
            server.kill()
            assert becomes_true(lambda: player.stream.is_lost)
            assert not player.stream.stop(2 * LIMIT_S), "without waiting: a hang fails by the process's limit"
            assert player.stream.stop(30.0)
            assert not player.stream.active
            assert not player.stream.is_lost
            assert player.is_away()
            assert player.is_away()
            assert server.start()
            assert player.comes_back()
            descriptors.append(len(os.listdir("/proc/self/fd")))
        assert player.finished == 0, "JACK does not report it"
        assert descriptors[1] - descriptors[0] <= 2
        assert len(os.listdir("/proc/self/task")) < 12
        assert player.stream.stop(30.0)


def jack_stopped_and_left() -> None:
    """A process that exits without closing while the server is gone ends well; sounddevice alone would abort."""
    with _jack() as server:
        player = Player(JACK, JACK)
        server.stop()
        assert becomes_true(lambda: player.stream.is_lost)


def jack_gone_before_the_end() -> None:
    """A process also ends well after its stream was closed, when PortAudio alone is still a client."""
    with _jack() as server:
        player = Player(JACK, JACK)
        assert player.stream.stop(30.0)
        server.kill()


def assert_survives_a_hang(player: Player, server: Server) -> None:
    """Calls time out while the server hangs, and the abandoned stream never calls the pipeline again."""
    server.pause()
    assert becomes_true(player.is_still)
    words, calls = player.words, int(player.words[CALLS])
    assert not player.stream.stop(0.5)
    assert not portaudio.refresh(limit_s=0.3)
    server.resume()
    assert player.comes_back()
    assert words[CALLS] == calls


def jack_hangs() -> None:
    """A run survives a JACK server that hangs."""
    with _jack() as server:
        player = Player(JACK, JACK)
        assert_survives_a_hang(player, server)
        assert player.stream.stop(30.0)


def pulse_killed() -> None:
    """PulseAudio reports that it ends."""
    with _pulse() as server:
        player = Player("ALSA: pulse_mic", "ALSA: pulse_cable")
        for losses in (1, 2):
            server.kill()
            assert becomes_true(lambda: player.stream.is_lost and player.finished == losses), (  # noqa: B023
                f"loss {losses}: lost {player.stream.is_lost}, {player.finished} ends reported"
            )
            assert player.stream.stop(2 * LIMIT_S)
            assert player.is_away()
            assert server.start()
            assert player.comes_back()
        assert player.stream.stop(30.0)
        assert player.finished == 2


def pulse_unplugged() -> None:
    """The device goes, its server stays; a stream cannot be opened until it is plugged in again."""
    with _pulse() as server:
        player = Player("ALSA: pulse_mic", "ALSA: pulse_cable")
        run("pactl", "unload-module", "module-null-sink", environment=server.environment)
        assert becomes_true(lambda: player.finished)
        assert player.stream.is_lost
        assert player.stream.stop(30.0)
        assert player.host.refresh()
        try:
            player.open()
        except DeviceError as error:
            assert "pulse_mic" in str(error), error
        else:
            raise AssertionError("a device that is not there was opened")
        for module in (["module-null-sink", "sink_name=cable"], ["module-remap-source", "source_name=mic"]):
            more = ["norewinds=1"] if "sink" in module[0] else ["master=cable.monitor"]
            run("pactl", "load-module", *module, *more, environment=server.environment)
        assert player.comes_back()


def pulse_hangs() -> None:
    """A run survives PulseAudio hanging."""
    with _pulse() as server:
        player = Player("ALSA: pulse_mic", "ALSA: pulse_cable")
        assert_survives_a_hang(player, server)


def through_python() -> None:
    """A callback in Python plays and reports the same; the process exits cleanly while the server runs."""
    with _jack():
        assert "sounddevice" not in sys.modules
        player = Player(JACK, JACK, native=False)
        stream = player.stream
        assert stream.note is not None
        assert "Python" in stream.note
        assert player.words[TIMED] == player.words[CALLS]
        player.words[END_AT] = player.words[CALLS] + 5
        assert becomes_true(lambda: player.finished == 1)
        assert stream.stop(30.0)
        assert stream.stop(30.0)
        _only_one_side(player)
        with pytest.raises(DeviceError, match=f"{JACK}: does not open .* choose another device or rate"):
            player.host.open(request(counters(), player.host.choose("input", JACK), None, rate_hz=44100))
        _exit()


def _only_one_side(player: Player) -> None:
    for sides in ((JACK, None), (None, JACK)):
        words = counters()
        chosen = [
            None if name is None else player.host.choose(kind, name)
            for kind, name in zip(("input", "output"), sides)
        ]
        stream = player.host.open(request(words, *chosen))
        stream.start()
        assert becomes_true(lambda words=words: words[CALLS] > 5)
        assert words[FLAGS] & ~0x10 == 0
        assert stream.stop(30.0)


def beside_sounddevice() -> None:
    """Another user of the library in this process is not disturbed: our streams load their own copy."""
    with _jack():
        import sounddevice

        other = sounddevice.RawStream(
            48000, 480, JACK.partition(": ")[2], 1, "float32", callback=lambda *_: None
        )
        other.start()
        player = Player(JACK, JACK)
        assert player.stream.stop(30.0)
        assert player.comes_back()
        assert player.stream.stop(30.0)
        portaudio.release()
        assert other.active
        other.close()
        _exit()


def fork_child() -> None:
    """A child process opens devices itself and leaves inherited streams alone."""
    with _jack():
        player = Player(JACK, JACK)
        child = os.fork()
        if child == 0:
            inherited = player.stream.stop(1.0)
            titles = [device.title for device in portaudio.PortAudio().devices()]
            portaudio.release()
            os._exit(0 if JACK in titles and not inherited else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert player.runs()
        assert player.stream.stop(30.0)
