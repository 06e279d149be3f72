"""The source of a run's audio: a file, standard input, or a pipe."""

import os
import stat
from pathlib import Path

from pulse.errors import InputError, file_errors
from streaming.audio.audio_formats import holds_audio, is_audio_file
from streaming.audio.files import AudioReader
from streaming.audio.interfaces import AudioSource
from streaming.audio.pipes import StreamReader
from streaming.audio.wav_stream import StreamFormat

STANDARD_INPUT = "standard input"
INPUT_NAMES = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
DESCRIPTORS = ("/dev/fd", "/proc/self/fd")
"""Folders of the open files of a process."""


def open_audio_source(path: Path, raw: StreamFormat | None) -> AudioSource:
    """Open an audio file for reading.

    path    a file that libsndfile reads; ``-`` or ``/dev/stdin``; a pipe or device, which is read as data arrive
    raw     the format of a source without a header
    Raises  InputError: no such source, or not audio
    """
    if str(path) in INPUT_NAMES:
        descriptor, name = _standard_input(), STANDARD_INPUT
    elif raw is None and not is_stream(path):
        return AudioReader(path)
    else:
        descriptor, name = _open(path), str(path)
    if raw is None and stat.S_ISREG(os.fstat(descriptor).st_mode):
        return AudioReader(name, descriptor)
    return StreamReader(name, descriptor, raw)


def is_stream(path: Path) -> bool:
    """Return whether a path can be read or written only once: ``-``, a pipe, a terminal or another device."""
    if str(path) == "-" or str(path.parent) in DESCRIPTORS or str(path) in ("/dev/stdin", "/dev/stdout"):
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def is_audio_source(path: Path) -> bool:
    """Return whether a path is audio rather than a model, by its kind, its suffix or its content."""
    return is_stream(path) or is_audio_file(path) or holds_audio(path)


def _standard_input() -> int:
    with file_errors(STANDARD_INPUT, "read", InputError):
        descriptor = os.dup(0)
    if os.isatty(descriptor):
        os.close(descriptor)
        raise InputError(
            f"{STANDARD_INPUT}: is a terminal; pipe audio into it, such as "
            "ffmpeg -i FILE -f wav - | pulse run - out.wav"
        )
    return descriptor


def _open(path: Path) -> int:
    with file_errors(path, "read", InputError, "check the path"):
        return os.open(path, os.O_RDONLY)
