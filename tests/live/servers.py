"""The real JACK and PulseAudio servers that the tests of this folder start; the latter has a null sink.

With ``PULSE_REQUIRE_SERVERS=1`` a missing server is a failure, otherwise the test is skipped.
"""

import os
import tempfile
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from ctypes.util import find_library
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from bench.live.server import Server, last_lines, require
from pulse.errors import PulseError

PULSE_PACKAGES = "pulseaudio pulseaudio-utils libasound2-plugins libportaudio2"
AnyServer = TypeVar("AnyServer", bound=Server)


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the test, or fail it if servers are required."""
    if os.environ.get("PULSE_REQUIRE_SERVERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def require_portaudio() -> None:
    """Skip the test, or fail it if servers are required, if PortAudio is not installed."""
    if find_library("portaudio") is None:
        skip_or_fail("PortAudio is not here: apt install libportaudio2")


@contextmanager
def server_or_skip(server: AbstractContextManager[AnyServer]) -> Generator[AnyServer]:
    """Start a server, or skip the test if it or PortAudio is not installed."""
    require_portaudio()
    with ExitStack() as stack:
        try:
            started = stack.enter_context(server)
        except PulseError as error:
            skip_or_fail(str(error))
        yield started


@contextmanager
def pulse_server(rate_hz: int = 48000) -> Generator[Server]:
    """A server of PulseAudio: ``pulse_mic`` records what is played to ``pulse_cable``, both of ALSA.

    Raises  PulseError: it is not installed, or does not start
    """
    require("pulseaudio", "pactl", "setpriv", packages=PULSE_PACKAGES)
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
            f"module-null-sink sink_name=cable rate={rate_hz} channels=2 norewinds=1",
            "module-remap-source source_name=mic master=cable.monitor",
        )
        options = ("-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--disable-shm=yes")
        command = ("pulseaudio", *options, *(part for module in modules for part in ("-L", module)))
        server = Server(command, environment, ("pactl", "info"), log)
        try:
            if not server.start():
                raise PulseError(f"pulseaudio does not start; see what it says: {last_lines(log)}")
            yield server
        finally:
            server.stop()


@contextmanager
def use_server(server: Server) -> Generator[None]:
    """Let PortAudio in this process find a JACK server while the context is open.

    PulseAudio reads its environment once, so it needs its own process.
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
