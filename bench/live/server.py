"""A sound server without hardware: JACK with its dummy driver, which keeps time as a sound card does."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from pulse.errors import PulseError

READY_S = 10.0
HOST_API = "JACK Audio Connection Kit"
FORMS = (("-R", "-P70"), ("-r",))
"""Arguments with real-time priority, and without."""


@contextmanager
def jack(rate_hz: int, block_frames: int) -> Generator[None]:
    """A server of its own, the one that this process finds; import sounddevice only inside.

    Raises  PulseError: it is not installed, or does not start
    """
    name = f"pulse-bench-{os.getpid()}"
    os.environ |= {"JACK_DEFAULT_SERVER": name, "JACK_NO_START_SERVER": "1"}
    server = _started(name, rate_hz, block_frames)
    try:
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            server.wait(5)
        server.kill()
        server.wait()


def _started(name: str, rate_hz: int, block_frames: int) -> "subprocess.Popen[bytes]":
    driver = ("-d", "dummy", "-r", str(rate_hz), "-p", str(block_frames))
    if None in (shutil.which("jackd"), shutil.which("jack_wait")):
        raise PulseError("there is no jackd; install it: apt install jackd2 libportaudio2")
    for form in FORMS:
        server = subprocess.Popen(
            ["jackd", "-n", name, *form, *driver], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + READY_S
        while server.poll() is None and time.monotonic() < until:
            found = subprocess.run(["jack_wait", "-s", name, "-c"], capture_output=True, check=False)
            if found.stdout.startswith(b"running"):
                return server
            time.sleep(0.05)
        server.kill()
        server.wait()
    raise PulseError(f"jackd does not start; see what it says: jackd {' '.join((*FORMS[-1], *driver))}")


@contextmanager
def portaudio() -> Generator[int]:
    """PortAudio inside of ``jack``, and the server's device as sounddevice numbers it.

    PortAudio is ended with the context: it ends the process where its server has gone before.

    Raises  PulseError: it is not installed, or does not know JACK
    """
    try:
        import sounddevice
    except OSError as error:
        raise PulseError(f"{error}; install it: apt install libportaudio2") from error
    try:
        apis = {api["name"]: api["default_output_device"] for api in sounddevice.query_hostapis()}
        if apis.get(HOST_API, -1) < 0:
            raise PulseError(
                f"PortAudio finds no device of JACK, but {', '.join(apis)}; it needs to be built with JACK"
            )
        yield apis[HOST_API]
    finally:
        sounddevice._terminate()
