"""Sound files in blocks."""

import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import numpy as np
import soundfile

from pulse.errors import InputError
from pulse.uncopied import Uncopied
from streaming.channels import Samples
from streaming.part import write_all
from streaming.replacing import part_of, publish, unwritable
from streaming.rf64 import lengthen

BLOCK_S = 0.5
ENCODINGS = {
    ".wav": ("WAV", ("PCM_16", "PCM_24", "FLOAT")),
    ".flac": ("FLAC", ("PCM_16", "PCM_24")),
    ".ogg": ("OGG", ("VORBIS",)),
}
"""Suffix -> format and its encodings, the usual one first."""


class AudioReader(Uncopied):
    """A sound file, read in blocks. WAV, FLAC, OGG and what else libsndfile reads.

    rate_hz, channels, frames  as the file states them; ``encoding`` is libsndfile's name, such as PCM_16
    Raises                     InputError: no such file, not a sound, or without samples

    Iteration gives [samples, channels] float32. It raises InputError where the file is damaged or holds NaN.
    """

    instead = "it has an open file; open the path again"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise InputError(f"{self.path}: no such file; check the path")
        if self.path.is_dir():
            raise InputError(f"{self.path}: is a folder; give a sound file in it")
        if self.path.stat().st_size == 0:
            raise InputError(f"{self.path}: the file is empty")
        try:
            self._file = soundfile.SoundFile(self.path)
        except (soundfile.LibsndfileError, TypeError, OSError) as error:
            raise InputError(
                f"{self.path}: cannot be read as sound ({_reason(error)}); give a WAV, FLAC or OGG file"
            ) from error
        self.rate_hz: int = self._file.samplerate
        self.channels: int = self._file.channels
        self.frames: int = self._file.frames
        self.encoding: str = self._file.subtype
        if self.frames == 0:
            self.close()
            raise InputError(f"{self.path}: the file has no samples")

    @property
    def duration_s(self) -> float:
        """Seconds of sound."""
        return self.frames / self.rate_hz

    def __iter__(self) -> Iterator[Samples]:
        size = max(1, int(self.rate_hz * BLOCK_S))
        done = 0
        while done < self.frames:
            block = self._read(min(size, self.frames - done), done)
            self._refuse_nan(block, done)
            done += len(block)
            yield block

    def _read(self, size: int, done: int) -> Samples:
        try:
            block = np.asarray(self._file.read(size, dtype="float32", always_2d=True), np.float32)
        except soundfile.LibsndfileError as error:
            self._refuse(done, _reason(error), error)
        if len(block) < size:
            self._refuse(done + len(block), "the samples end", None)
        return block

    def _refuse(self, sample: int, reason: str, cause: Exception | None) -> NoReturn:
        raise InputError(f"{self.path}: damaged at sample {sample} of {self.frames} ({reason})") from cause

    def _refuse_nan(self, block: Samples, done: int) -> None:
        bad = np.isnan(block).any(axis=1)
        if bad.any():
            sample = done + int(np.argmax(bad))
            raise InputError(
                f"{self.path}: NaN at sample {sample} ({sample / self.rate_hz:.3f} s); write it again without"
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "AudioReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AudioWriter(Uncopied):
    """A sound file to write; it appears under its name only when the ``with`` block ends well.

    path      the suffix says the format: .wav, .flac or .ogg
    encoding  one of ``ENCODINGS``, or that of a source; the usual one where the format has no such
    clipped   samples beyond -1..1 that were written to an integer encoding
    Raises    InputError: the format, or a folder that cannot be written to

    A .wav beyond 4 GiB becomes RF64 when it is closed; see ``streaming.rf64``.
    """

    instead = "it writes one file; make another one with another path"

    def __init__(
        self, path: str | os.PathLike[str], rate_hz: int, channels: int, encoding: str | None = None
    ) -> None:
        self.path = Path(path)
        self.clipped = 0
        self.samples = 0
        self._form, encodings = sound_format(self.path)
        self.encoding = encoding if encoding in encodings else encodings[0]
        self._part = part_of(self.path)
        self._bytes = _Bytes(self._part, "r+b")
        try:
            self._file = soundfile.SoundFile(
                self._bytes, "w", rate_hz, channels, self.encoding, format=self._form
            )
        except soundfile.LibsndfileError as error:
            self._bytes.close()
            self._part.unlink(missing_ok=True)
            raise InputError(f"{self.path}: cannot be written ({_reason(error)})") from error
        if self._bytes.problem is not None:
            self._discard()
            self._require_whole()

    def write(self, block: Samples) -> None:
        """Append [samples, channels]. Raises InputError: the disk is full, for one; then a part of them may be there,
        and nothing more can be written.
        """
        self._require_whole()
        if self.encoding != "FLOAT":
            self.clipped += int(np.count_nonzero(np.abs(block) > 1))
        try:
            self._file.write(block)
        except (soundfile.LibsndfileError, AssertionError) as error:  # it asserts that all is written
            self._require_whole()
            raise unwritable(self.path, _reason(error)) from error
        self._require_whole()
        self.samples += len(block)

    def close(self) -> None:
        """End the file; it gets its name. Raises InputError: it cannot, or its end is missing and ``write`` has not
        told so.
        """
        told = self._bytes.problem is not None
        problem: Exception | None = None
        try:
            self._end()
            if self._form == "WAV":
                lengthen(self._part)
        except (soundfile.LibsndfileError, OSError) as error:
            problem = error
        publish(self._part, self.path)
        problem = self._bytes.problem or problem
        if problem is not None and not told:
            raise unwritable(self.path, _reason(problem)) from problem

    def _end(self) -> None:
        try:
            self._file.close()
        finally:
            self._bytes.close()

    def _discard(self) -> None:
        try:
            self._end()
        finally:
            self._part.unlink(missing_ok=True)

    def _require_whole(self) -> None:
        if self._bytes.problem is not None:
            raise unwritable(self.path, _reason(self._bytes.problem)) from self._bytes.problem

    def __enter__(self) -> "AudioWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        self._discard()


class _Bytes(FileIO):
    """What libsndfile writes to. It tells that the system has refused something, but not what: that is here.

    problem  what was refused first; the file does not grow from then on, since something would be missing in between
    """

    problem: OSError | None = None

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  # only libsndfile calls
        """How many of them were written."""
        position = self.tell()
        if self.problem is not None:
            data = data[: max(os.fstat(self.fileno()).st_size - position, 0)]
        try:
            write_all(super().write, data)
        except OSError as error:
            self.problem = self.problem or error
        return self.tell() - position


def sound_format(path: Path) -> tuple[str, tuple[str, ...]]:
    """The name of the format in libsndfile and its encodings. Raises InputError."""
    if path.suffix.lower() not in ENCODINGS:
        known = ", ".join(ENCODINGS)
        raise InputError(f"{path}: no sound format is called {path.suffix or 'nothing'!r}; use {known}")
    return ENCODINGS[path.suffix.lower()]


def is_sound(path: Path) -> bool:
    """Whether the suffix is one that ``AudioWriter`` writes."""
    return path.suffix.lower() in ENCODINGS


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = error.error_string if isinstance(error, soundfile.LibsndfileError) else str(error)
    return text.rstrip(".").splitlines()[0] if text else type(error).__name__
