"""The formats of audio files, as the installed libsndfile knows them."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import cast

import soundfile

from pulse.errors import InputError
from pulse.support.naming import unknown_name
from pulse.support.record import record
from pulse.support.wording import spell
from streaming.audio.encodings import ENCODINGS

SUFFIXES = {
    "aif": ("AIFF", None),
    "aifc": ("AIFF", None),
    "snd": ("AU", None),
    "oga": ("OGG", None),
    "opus": ("OGG", "OPUS"),
    "pcm": ("RAW", None),
    "sf": ("IRCAM", None),
    "sph": ("NIST", None),
    "wave": ("WAV", None),
}
"""Suffixes other than format names -> format, and the encoding that the suffix implies."""
UNWRITABLE = {"SD2"}
"""Formats of more than one file."""
COMMON_SUFFIXES = ("wav", "flac", "ogg", "opus", "mp3", "aiff", "caf", "au", "w64", "rf64")
"""Suffixes that messages mention, if libsndfile supports them."""
BITS = {
    "PCM_S8": 8,
    "PCM_U8": 8,
    "PCM_16": 16,
    "ALAC_16": 16,
    "ALAC_20": 20,
    "PCM_24": 24,
    "ALAC_24": 24,
    "PCM_32": 32,
    "ALAC_32": 32,
}
"""The bits of the encodings that store integers without loss."""
FLOATING = {"FLOAT": 24, "DOUBLE": 53}
"""The bits of floating-point encodings."""
UNCLIPPED = {*FLOATING, "VORBIS", "OPUS", "MPEG_LAYER_I", "MPEG_LAYER_II", "MPEG_LAYER_III"}
"""The encodings that keep samples beyond -1..1."""


@record
class AudioFormat:
    """A format of audio files.

    name              libsndfile's name, such as WAV
    default_encoding  libsndfile's name of its default encoding
    """

    name: str
    default_encoding: str

    @property
    def encodings(self) -> tuple[str, ...]:
        """All its encodings, by libsndfile's names."""
        return tuple(soundfile.available_subtypes(self.name))

    def suitable_encoding(self, source: str | None) -> str:
        """Return the encoding that best preserves the precision of a source's encoding.

        For a source with lossy compression, it is the default one.
        """
        if source not in BITS and source not in FLOATING:
            return self.default_encoding
        if source in self.encodings:
            return source
        ours = [name for name in self.encodings if name in BITS]
        floating = [name for name in self.encodings if name in FLOATING]
        if source in FLOATING and floating:
            return floating[-1]
        bits = BITS.get(source, 24)
        enough = [name for name in ours if BITS[name] >= bits]
        if enough:
            return min(enough, key=BITS.__getitem__)
        enough = [name for name in floating if FLOATING[name] >= bits]
        return enough[0] if enough else max(ours, key=BITS.__getitem__, default=self.default_encoding)

    def parse_encoding(self, name: str) -> str:
        """Return the encoding of that name, libsndfile's or one of ``ENCODINGS``.

        Raises InputError: the format does not have it
        """
        encoding = ENCODINGS[name].subtype if name in ENCODINGS else name.upper()
        if encoding not in self.encodings:
            names = [encoding.lower() for encoding in self.encodings]
            raise InputError(f"{self.name}: {unknown_name('encoding', name, names)}")
        return encoding


@cache
def _usual_encodings() -> dict[str, str]:
    """Return every format that can be written -> its usual encoding."""
    names = soundfile.available_formats()
    return {name: soundfile.default_subtype(name) or "PCM_16" for name in names if name not in UNWRITABLE}


def find_format(suffix: str) -> AudioFormat | None:
    """Return the format of a suffix, with or without its dot; None if it is not one of audio."""
    word = suffix.removeprefix(".")
    name, encoding = SUFFIXES.get(word.lower(), (word.upper(), None))
    usual = _usual_encodings().get(name)
    if usual is None or (encoding is not None and encoding not in soundfile.available_subtypes(name)):
        return None
    return AudioFormat(name, encoding or usual)


def audio_format(path: Path) -> AudioFormat:
    """Return the format of a file, by its suffix. Raises InputError: no format has the suffix."""
    known_format = find_format(path.suffix)
    if known_format is None:
        reason = f"unknown audio format {path.suffix!r}" if path.suffix else "a file of audio needs a suffix"
        raise InputError(f"{path}: {reason}; use {common_suffixes()}")
    return known_format


def is_audio_file(path: Path) -> bool:
    """Return whether the suffix is one of audio."""
    return find_format(path.suffix) is not None


def open_file(path: Path | int) -> soundfile.SoundFile:
    """Open a file, or the descriptor of one, which is closed. Raises the binding's errors.

    Names need not be UTF-8: libsndfile gets the system's bytes.
    """
    if sys.platform == "win32":
        return soundfile.SoundFile(path)
    if isinstance(path, int):
        try:  # libsndfile does not recognise MP3 from a bare descriptor
            return open_file(Path(f"/dev/fd/{path}"))
        finally:
            os.close(path)
    return soundfile.SoundFile(cast("str", os.fsencode(path)))  # accepts bytes, too


def holds_audio(path: Path) -> bool:
    """Return whether libsndfile finds audio in a file, whatever its name."""
    if not path.is_file():
        return False
    try:
        open_file(path).close()
    except (soundfile.LibsndfileError, TypeError, OSError):
        return False
    return True


def common_suffixes() -> str:
    """Return the suffixes that most people need, for messages."""
    return ", ".join(f".{suffix}" for suffix in COMMON_SUFFIXES if find_format(suffix) is not None)


def float_hint(audio_format: AudioFormat) -> str:
    """Return the hint for users about encodings that keep samples beyond -1..1."""
    if "FLOAT" in audio_format.encodings:
        return f"{spell('encoding', 'float')} keeps them"
    return f"a .wav file with {spell('encoding', 'float')} keeps them"
