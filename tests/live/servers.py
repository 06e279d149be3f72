"""Sound servers without hardware: JACK with its dummy driver, PulseAudio with a null sink.

A server dies with the thread that started it, so use these in fixtures or in the test itself. Where
``PULSE_REQUIRE_SERVERS=1`` a missing server is a failure, otherwise the test is skipped.
"""

import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

import pytest

READY_S = 10.0
END_S = 3.0
SLOTS = 3
"""Servers of JACK at once, in all processes: it knows 8 names on a machine, and one that was killed keeps its name."""
PRIORITIES = (("-R", "-P70"), ("-r",))
"""Arguments with real-time priority, and without."""
JACK_PACKAGES = "jackd2 libportaudio2"
PULSE_PACKAGES = "pulseaudio pulseaudio-utils libasound2-plugins libportaudio2"


def missing(reason: str) -> NoReturn:
    """Skip the test, or let it fail where servers are required."""
    if os.environ.get("PULSE_REQUIRE_SERVERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def run(*command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A tool of a server, its output as text. Raises AssertionError if it fails."""
    done = subprocess.run(
        command,
        env=os.environ | dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done


@dataclass
class Server:
    """A server of its own.

    environment  what a process needs to find it, and no other
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    probe: Sequence[str]
    log: IO[str] = field(repr=False)
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> bool:
        """Start it, also again; whether it is ready."""
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self.command],
            env=os.environ | dict(self.environment),
            stdout=self.log,
            stderr=self.log,
            text=True,
        )
        until = time.monotonic() + READY_S
        while self.process.poll() is None and time.monotonic() < until:
            probe = subprocess.run(
                self.probe,
                env=os.environ | dict(self.environment),
                capture_output=True,
                timeout=READY_S,
                check=False,
            )
            if probe.returncode == 0:
                return True
            time.sleep(0.02)
        self.kill()
        return False

    def _signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it without giving it a chance."""
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """End it as an administrator would."""
        if self.process is None or self.process.poll() is not None:
            return
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        """Let it hang."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)


@dataclass
class JackServer(Server):
    """JACK; its device is ``system``, two channels each way."""

    name: str = ""
    rate_hz: int = 48000
    block_frames: int = 480

    def ports(self) -> list[str]:
        """Names of all ports."""
        return run("jack_lsp", "-s", self.name).stdout.split()

    def connect(self, source: str, target: str) -> None:
        """Let one port hear another."""
        run("jack_connect", "-s", self.name, source, target)

    def disconnect(self, source: str, target: str) -> None:
        """The reverse."""
        run("jack_disconnect", "-s", self.name, source, target)

    def freewheel(self, on: bool) -> None:
        """Let time run as fast as the clients can, or at its usual speed."""
        run("jack_freewheel", "y" if on else "n", environment=self.environment)


@contextmanager
def jack_server(rate: int = 48000, block: int = 480) -> Generator[JackServer]:
    """A server of JACK with its dummy driver, which has a clock like a sound card's."""
    _require("jackd", "jack_lsp", "setpriv", packages=JACK_PACKAGES)
    with _slot() as name, tempfile.TemporaryFile("w+") as log:
        environment = {"JACK_DEFAULT_SERVER": name, "JACK_NO_START_SERVER": "1"}
        driver = ("-d", "dummy", "-r", str(rate), "-p", str(block))
        for priority in PRIORITIES:
            command = ("jackd", "-n", name, *priority, "-t", "5000", *driver)
            server = JackServer(command, environment, ("jack_lsp", "-s", name), log, None, name, rate, block)
            try:
                if server.start():
                    yield server
                    return
            finally:
                server.stop()
                _sweep(name)
        missing(f"jackd does not start: {_end_of(log)}")


@contextmanager
def pulse_server(rate: int = 48000) -> Generator[Server]:
    """A server of PulseAudio: what is played to ``pulse_cable`` is heard on ``pulse_mic``, both of ALSA."""
    _require("pulseaudio", "pactl", "setpriv", packages=PULSE_PACKAGES)
    with tempfile.TemporaryDirectory(prefix="pulse-") as name, tempfile.TemporaryFile("w+") as log:
        folder = Path(name)
        (folder / "asound.conf").write_text(
            "</usr/share/alsa/alsa.conf>\n"
            + "".join(
                f'pcm.pulse_{device} {{ type pulse device "{device}" hint {{ show on description "{device}" }} }}\n'
                for device in ("mic", "cable")
            )
        )
        socket = folder / "native"
        environment = {
            "PULSE_RUNTIME_PATH": name,
            "PULSE_STATE_PATH": name,
            "PULSE_CONFIG_PATH": name,
            "PULSE_SERVER": f"unix:{socket}",
            "ALSA_CONFIG_PATH": str(folder / "asound.conf"),
            "JACK_DEFAULT_SERVER": "pulse-test-none",
            "JACK_NO_START_SERVER": "1",
        }
        modules = (
            f"module-native-protocol-unix auth-anonymous=1 socket={socket}",
            f"module-null-sink sink_name=cable rate={rate} channels=2 norewinds=1",
            "module-remap-source source_name=mic master=cable.monitor",
        )
        options = ("-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--disable-shm=yes")
        command = ("pulseaudio", *options, *(part for module in modules for part in ("-L", module)))
        server = Server(command, environment, ("pactl", "info"), log)
        try:
            if not server.start():
                missing(f"pulseaudio does not start: {_end_of(log)}")
            yield server
        finally:
            server.stop()


@contextmanager
def found_here(server: Server) -> Generator[None]:
    """Let PortAudio in this process find a server of JACK, and no longer afterwards; streams are closed then.

    PulseAudio reads its environment once, so it needs a process of its own.
    """
    from streaming.hosts.portaudio import portaudio

    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        portaudio.release()
        try:
            yield
        finally:
            portaudio.release()


def _require(*programs: str, packages: str) -> None:
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    for program in programs:
        if not any(os.access(folder / program, os.X_OK) for folder in folders):
            missing(f"{program} is not here: apt install {packages}")


@contextmanager
def _slot() -> Iterator[str]:
    """The name of a server that no other process has."""
    folder, user = Path(tempfile.gettempdir()), os.getuid()
    files = [folder / f"pulse-test-jack-{user}-{number}.lock" for number in range(SLOTS)]
    while True:
        for number, path in enumerate(files):
            with path.open("a") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield f"pulse-test-{number}"
                return
        time.sleep(0.1)


def _sweep(name: str) -> None:
    """Remove what a server that was killed has left behind."""
    for left in Path("/dev/shm").glob(f"jack_*{name}_*"):
        left.unlink(missing_ok=True)


def _end_of(log: IO[str]) -> str:
    log.seek(0)
    return " / ".join(log.read().split("\n")[-4:])
