"""Audio files in blocks."""

import os
import re
import warnings
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import NoReturn

import numpy as np
import soundfile

from pulse.errors import InputError, PulseWarning
from pulse.support.wording import count_of, spell
from streaming.audio.audio_formats import (
    BITS,
    UNCLIPPED,
    AudioFormat,
    audio_format,
    common_suffixes,
    open_file,
)
from streaming.audio.channels import Samples
from streaming.audio.interfaces import BLOCK_S, AudioSink, AudioSource, Clipping
from streaming.audio.rf64 import convert_to_rf64
from streaming.files.atomic import create_temporary_file, publish, write_error
from streaming.files.partial import write_all

EXACT_BITS = 24
"""Integers of up to this many bits are exact in float32."""
RF64_FORMATS = ("WAV", "WAVEX")
_CUT_SHORT = re.compile(r": (\d+) \(should be (\d+)\)")
"""libsndfile's log for a header that states a wrong number of bytes; the last match is the audio's."""
_UNKNOWN_BYTES = 0x7FFF_0000
"""A header states this many bytes or more if its writer did not know the length, as in a pipe."""


class AudioReader(AudioSource):
    """An audio file, read in blocks, in any format that libsndfile reads.

    path        the file
    descriptor  the descriptor of the file if it is open, such as standard input; it is closed
    Raises      InputError: no such file, not an audio file, or without samples

    Iteration raises InputError if the file is damaged or holds NaN.
    """

    def __init__(self, path: str | os.PathLike[str], descriptor: int | None = None) -> None:
        self.path = Path(path)
        self.name = str(self.path)
        if descriptor is None:
            self._require_file()
        self._file = self._open(descriptor)
        self.rate_hz = self._file.samplerate
        self.channels = self._file.channels
        self._frames: int = self._file.frames
        self.encoding = self._file.subtype
        if self.frames == 0:
            self.close()
            raise InputError(f"{self.path}: the file has no samples")
        self._warn_if_cut_short()

    @property
    def frames(self) -> int:
        """Samples of each channel."""
        return self._frames

    @property
    def duration_s(self) -> float:
        """Seconds of audio."""
        return self.frames / self.rate_hz

    def __iter__(self) -> Iterator[Samples]:
        size = max(1, int(self.rate_hz * BLOCK_S))
        frames_read = 0
        while frames_read < self.frames:
            block = self._read(min(size, self.frames - frames_read), frames_read)
            self._refuse_nan(block, frames_read)
            frames_read += len(block)
            yield block

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _require_file(self) -> None:
        if not self.path.exists():
            raise InputError(f"{self.path}: no such file; check the path")
        if self.path.is_dir():
            raise InputError(f"{self.path}: is a folder; give an audio file in it")
        if not self.path.is_file():
            raise InputError(f"{self.path}: is a pipe or a device, which cannot be read twice; give a file")
        if self.path.stat().st_size == 0:
            raise InputError(f"{self.path}: the file is empty")

    def _open(self, descriptor: int | None) -> soundfile.SoundFile:
        try:
            return open_file(self.path if descriptor is None else descriptor)
        except TypeError as error:  # the binding's error for a suffix of raw samples
            raise InputError(
                f"{self.path}: raw samples of unknown format; give {spell('raw', 's16,48000,2')}"
            ) from error
        except (soundfile.LibsndfileError, OSError) as error:
            raise InputError(
                f"{self.path}: cannot be read as audio ({_reason(error)}); give {common_suffixes()} or another "
                "format of libsndfile, or convert it: ffmpeg -i FILE new.wav"
            ) from error

    def _warn_if_cut_short(self) -> None:
        notes = _CUT_SHORT.findall(self._file.extra_info)
        announced, present = map(int, notes[-1]) if notes else (0, 0)
        if present < announced < _UNKNOWN_BYTES:
            missing_fraction = 1 - present / announced
            warnings.warn(
                f"{self.path}: the file is truncated, {missing_fraction:.0%} of the audio that its header announces is "
                f"missing; {count_of(self.frames, 'sample', form=',')} ({self.duration_s:.3f} s) are read",
                PulseWarning,
                stacklevel=3,
            )

    def _read(self, size: int, start: int) -> Samples:
        try:
            block = np.asarray(self._file.read(size, dtype="float32", always_2d=True), np.float32)
        except soundfile.LibsndfileError as error:
            self._raise_damage(start, _reason(error), error)
        if len(block) < size:
            self._raise_damage(start + len(block), "the samples end", None)
        return block

    def _raise_damage(self, sample: int, reason: str, cause: Exception | None) -> NoReturn:
        raise InputError(f"{self.path}: damaged at sample {sample} of {self.frames} ({reason})") from cause


class AudioWriter(AudioSink):
    """An audio file to write; it appears only when the ``with`` block ends without error.

    encoding     libsndfile's name, such as that of a source; if the format lacks it, the nearest that it has
    file_format  the format; by default that of the suffix of ``path``
    samples      samples written of each channel
    Raises       InputError: an unknown format, or a folder that cannot be written to

    Integers are rounded to the nearest, and NaN becomes 0. A .wav beyond 4 GiB becomes RF64 when it is closed; see
    ``streaming.audio.rf64``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        rate_hz: int,
        channels: int,
        encoding: str | None = None,
        file_format: AudioFormat | None = None,
    ) -> None:
        self.path = Path(path)
        self.samples = 0
        self.clipping = Clipping(channels)
        self.file_format = file_format or audio_format(self.path)
        same = encoding if encoding in self.file_format.encodings else None
        self.encoding = same or self.file_format.suitable_encoding(encoding)
        bits = BITS.get(self.encoding, 0)
        self._scale = np.float32(1 << (bits - 1)) if 0 < bits <= EXACT_BITS else None
        self._part = create_temporary_file(self.path)
        self._bytes = _ErrorRecordingFile(self._part, "r+b")
        try:
            self._file = soundfile.SoundFile(
                self._bytes, "w", rate_hz, channels, self.encoding, format=self.file_format.name
            )
        except soundfile.LibsndfileError as error:
            self._bytes.close()
            self._part.unlink(missing_ok=True)
            kind = (
                f"{self.file_format.name} of {channels} channel{'s' if channels > 1 else ''} at {rate_hz} Hz"
            )
            raise InputError(
                f"{self.path}: cannot be written as {kind}, {self.encoding} ({_reason(error)}); write a .wav file"
            ) from error
        if self._bytes.problem is not None:
            self.discard()
            self._raise_if_failed()

    def write(self, block: Samples) -> None:
        """Append [samples, channels].

        Raises InputError: for instance, the disk is full; then a part may be written, and nothing more can be
        """
        self._raise_if_failed()
        if self.encoding not in UNCLIPPED:
            self.clipping.count(block)
            block = np.where(np.isnan(block), np.float32(0), block)
        try:
            self._file.write(block if self._scale is None else np.rint(block * self._scale) / self._scale)
        except (soundfile.LibsndfileError, AssertionError) as error:  # soundfile asserts that all is written
            self._raise_if_failed()
            raise write_error(self.path, _reason(error)) from error
        self._raise_if_failed()
        self.samples += len(block)

    def close(self) -> None:
        """End the file, which then appears.

        Raises InputError: it cannot, or its end is missing and ``write`` has not raised
        """
        had_problem = self._bytes.problem is not None
        problem: Exception | None = None
        try:
            self._end()
            if self.file_format.name in RF64_FORMATS:
                convert_to_rf64(self._part)
        except (soundfile.LibsndfileError, OSError) as error:
            problem = error
        publish(self._part, self.path)
        problem = self._bytes.problem or problem
        if problem is not None and not had_problem:
            raise write_error(self.path, _reason(problem)) from problem

    def _end(self) -> None:
        try:
            self._file.close()
        finally:
            self._bytes.close()

    def discard(self) -> None:
        """End the file after an error, and remove it."""
        try:
            self._end()
        finally:
            self._part.unlink(missing_ok=True)

    def _raise_if_failed(self) -> None:
        if self._bytes.problem is not None:
            raise write_error(self.path, _reason(self._bytes.problem)) from self._bytes.problem


class _ErrorRecordingFile(FileIO):
    """The file that libsndfile writes to. Keeps the system's error, which libsndfile does not report.

    problem  the first error; the file does not grow after it, since it would have a gap
    """

    problem: OSError | None = None

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  # only libsndfile calls
        """Write bytes. Returns their number."""
        position = self.tell()
        if self.problem is not None:
            data = data[: max(os.fstat(self.fileno()).st_size - position, 0)]
        try:
            write_all(super().write, data)
        except OSError as error:
            self.problem = self.problem or error
        return self.tell() - position


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = error.error_string if isinstance(error, soundfile.LibsndfileError) else str(error)
    return text.rstrip(".").splitlines()[0] if text else type(error).__name__
