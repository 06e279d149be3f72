"""Sound servers without hardware: JACK with its dummy driver, which keeps time as a sound card does."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pulse.errors import PulseError

READY_TIMEOUT_S = 30.0
"""A server that is not ready after this many seconds is an error."""
END_TIMEOUT_S = 3.0
"""A server that has not ended after this many seconds is killed."""
MAX_SERVERS = 3
"""JACK servers at once, in all processes: it knows 8 names on a machine, and one that was killed keeps its name."""
SHARED = Path("/dev/shm")
"""Where JACK has the list of its servers, one for all processes, whatever their folders for temporary files."""
PRIORITIES = (("-R", "-P70"), ("-r",))
"""Arguments with real-time priority, and without."""
JACK_PACKAGES = "jackd2 libportaudio2"
"""The packages of Debian that the server needs."""
HOST_API = "JACK Audio Connection Kit"
"""The name of JACK among PortAudio's host APIs."""


def run(*command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool of a server, with its output as text. Raises PulseError: it fails."""
    try:
        process = subprocess.run(
            command,
            env=os.environ | dict(environment or {}),
            capture_output=True,
            text=True,
            timeout=READY_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PulseError(f"{' '.join(command)}: no answer; does its server hang? Start it again") from error
    if process.returncode:
        output = f"{process.stdout}{process.stderr}".strip()
        raise PulseError(f"{' '.join(command)}: failed; see whether its server runs: {output}")
    return process


def require(*programs: str, packages: str) -> None:
    """Raise PulseError if a tool is missing, with the Debian packages that have it."""
    for program in programs:
        if shutil.which(program) is None:
            raise PulseError(f"{program} is not here: apt install {packages}")


def last_lines(log: IO[str]) -> str:
    """Return the last lines of a server's output."""
    log.seek(0)
    return " / ".join(log.read().split("\n")[-4:])


@dataclass
class Server:
    """A sound server as a separate process, which ends with the thread that started it.

    environment  variables with which a process finds this server, and no other
    probe        succeeds when it is ready
    log          its output
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    probe: Sequence[str]
    log: IO[str] = field(repr=False)
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> bool:
        """Start or restart the server. Returns whether it is ready."""
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self.command],
            env=os.environ | dict(self.environment),
            stdout=self.log,
            stderr=self.log,
            text=True,
        )
        until = time.monotonic() + READY_TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < until:
            with suppress(PulseError):
                run(*self.probe, environment=self.environment)
                return True
            time.sleep(0.02)
        self.kill()
        return False

    def _signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """Stop the server with SIGTERM."""
        if self.process is None or self.process.poll() is not None:
            return
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        """Suspend the server with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a suspended server."""
        self._signal(signal.SIGCONT)


@dataclass
class JackServer(Server):
    """A JACK server, whose device ``system`` has two inputs and two outputs."""

    name: str = ""
    rate_hz: int = 48000
    block_frames: int = 480

    def ports(self) -> list[str]:
        """Return the names of all ports."""
        return run("jack_lsp", "-s", self.name).stdout.split()

    def connect(self, source: str, target: str) -> None:
        """Connect one port to another."""
        run("jack_connect", "-s", self.name, source, target)

    def disconnect(self, source: str, target: str) -> None:
        """Undo ``connect``."""
        run("jack_disconnect", "-s", self.name, source, target)

    def freewheel(self, on: bool) -> None:
        """Run as fast as the clients can, or in real time."""
        run("jack_freewheel", "y" if on else "n", environment=self.environment)


@contextmanager
def jack_server(rate_hz: int = 48000, block_frames: int = 480) -> Generator[JackServer]:
    """Run a JACK server; wait until fewer than ``MAX_SERVERS`` run.

    Raises  PulseError: it is not installed, or does not start
    """
    require("jackd", "jack_lsp", "setpriv", packages=JACK_PACKAGES)
    with _slot() as name, tempfile.TemporaryFile("w+") as log:
        environment = {"JACK_DEFAULT_SERVER": name, "JACK_NO_START_SERVER": "1"}
        driver = ("-d", "dummy", "-r", str(rate_hz), "-p", str(block_frames))
        probe = ("jack_lsp", "-s", name)
        for priority in PRIORITIES:
            command = ("jackd", "-n", name, *priority, "-t", "5000", *driver)
            server = JackServer(
                command=command,
                environment=environment,
                probe=probe,
                log=log,
                process=None,
                name=name,
                rate_hz=rate_hz,
                block_frames=block_frames,
            )
            try:
                if server.start():
                    yield server
                    return
            finally:
                server.stop()
                _sweep(name)
        raise PulseError(f"jackd does not start; see what it says: {last_lines(log)}")


@contextmanager
def _slot() -> Generator[str]:
    """Reserve the name of a server that no other process of the machine uses."""
    folder, user = SHARED if SHARED.is_dir() else Path(tempfile.gettempdir()), os.getuid()
    files = [folder / f"pulse-jack-{user}-{slot}.lock" for slot in range(MAX_SERVERS)]
    while True:
        for slot, path in enumerate(files):
            with path.open("a") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield f"pulse-{user}-{slot}"
                return
        time.sleep(0.1)


def _sweep(name: str) -> None:
    """Remove the files that a killed server has left behind."""
    for path in SHARED.glob(f"jack_*{name}_*"):
        path.unlink(missing_ok=True)


@contextmanager
def portaudio(server: JackServer) -> Generator[int]:
    """PortAudio, which finds no server but this one, and its device as sounddevice numbers it.

    PortAudio is ended with the context: it ends the process if its server has gone before.

    Raises  PulseError: it is not installed, or does not know JACK
    """
    os.environ.update(server.environment)
    try:
        import sounddevice
    except OSError as error:
        raise PulseError(f"{error}; install it: apt install libportaudio2") from error
    try:
        apis = {api["name"]: api["default_output_device"] for api in sounddevice.query_hostapis()}
        if apis.get(HOST_API, -1) < 0:
            raise PulseError(
                f"PortAudio finds no JACK device, but {', '.join(apis)}; it needs to be built with JACK"
            )
        yield apis[HOST_API]
    finally:
        sounddevice._terminate()
