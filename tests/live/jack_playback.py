"""A program that records and another one that plays to it, both on a JACK server."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import soundfile
from numpy.typing import NDArray

from bench.live.server import JackServer
from streaming.builtin import noisy_path
from streaming.hosts.portaudio.portaudio import PortAudio
from tests.live.sound_player import Cassette
from tests.sources import ROOT
from tests.waiting import becomes_true

JACK = "JACK Audio Connection Kit: system"
RATE_HZ = 16_000


def demo_command(name: str) -> tuple[str, ...]:
    """The command that starts a demo."""
    return sys.executable, "-u", str(ROOT / "demos" / name)


def pulse_command() -> tuple[str, ...]:
    """The command that starts the command line."""
    return sys.executable, "-u", "-c", "from streaming.cli import main; main()"


def inputs(server: JackServer) -> list[str]:
    """The ports of programs that listen."""
    return [port for port in server.ports() if ":in_" in port]


def builtin_sound() -> NDArray[np.float32]:
    """Speech in noise, at 16 kHz."""
    return soundfile.read(noisy_path(), dtype="float32")[0]


@contextmanager
def play_sound(server: JackServer, *command: str, times: int = 5) -> Generator["subprocess.Popen[str]"]:
    """A program that hears the built-in recording this many times."""
    cassette = Cassette(np.tile(np.repeat(builtin_sound(), server.rate_hz // RATE_HZ), times))
    host = PortAudio()
    player = host.open(cassette.request(host.choose("output", JACK), server.rate_hz, server.block_frames))
    player.start()
    (ours,) = (port for port in server.ports() if port.startswith("PortAudio:out"))
    cassette.begin()
    program = subprocess.Popen(
        command,
        env=os.environ | dict(server.environment),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert becomes_true(lambda: program.poll() is not None or inputs(server), 300), (
            "it does not open the device"
        )
        for port in inputs(server):
            server.connect(ours, port)
        yield program
    finally:
        program.kill()
        player.stop(1)
