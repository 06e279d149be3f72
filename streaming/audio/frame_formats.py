"""Formats of frames in files that grow frame by frame; the head is rewritten at the end."""

import csv
import io
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import prod
from typing import Protocol

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from streaming.files.atomic import unused_name
from streaming.files.partial import PartialFile

MAX_FRAMES = np.iinfo(np.int64).max
"""The header of a .npy has space for this number of frames, so that it can be amended in place."""
ALIGNMENT = 64
"""The header of a .npy is a multiple of this many bytes."""
MIN_TIME_DIGITS, MAX_TIME_DIGITS = 3, 6
"""The decimals of times in seconds: at least milliseconds, and at most microseconds."""
MAX_PIECE_BYTES = 1 << 22
"""Maximum number of bytes that are copied at a time."""


class FrameFormat(Protocol):
    """A format of frames."""

    def head(self, frames: int) -> bytes:
        """Return the head of a file of this many frames; its length does not depend on the number."""
        ...

    def body(self, frames: Array, first_frame: int) -> bytes:
        """Return the bytes of more frames; the first is frame ``first_frame`` of the file."""
        ...

    def complete(self, part: PartialFile, frames: int) -> PartialFile:
        """Complete the file after this many frames in ``part``.

        Raises InputError: it cannot be written; the error says where the frames are if they are no longer in ``part``
        """
        ...


class NpyFormat:
    """An array in numpy's format, version 1.0, with the dtype and shape of the first frames.

    A file grows along the slowest of its axes: the first in C order, the last in Fortran order, those of size 1 not
    counted. If the time axis is neither, frames are stored one after another, and rewritten in C order to a second
    file at the end. If the disk lacks space for it, they stay as an array whose first axis is the frames.
    """

    def __init__(self, first: Array, axis: int | None) -> None:
        self._dtype, self._shape, self._axis = first.dtype, first.shape, axis
        inner_size = 1 if axis is None else prod(self._shape[axis + 1 :])
        outer_size = 1 if axis is None else prod(self._shape[:axis])
        self._outer_size, self._inner_size = outer_size, inner_size
        self._fortran = outer_size > 1 and inner_size <= 1
        self._needs_reordering = outer_size > 1 and inner_size > 1
        magic = np.lib.format.magic(1, 0)
        size = -(-(len(magic) + 2 + len(self._text(self._shape_of(MAX_FRAMES))) + 1) // ALIGNMENT) * ALIGNMENT
        self._start = magic + (size - len(magic) - 2).to_bytes(2, "little")
        self._header_bytes = size - len(self._start)

    def head(self, frames: int) -> bytes:
        """Return the head, padded with spaces so that the largest number fits."""
        return self._head(self._shape_of(frames))

    def body(self, frames: Array, first_frame: int) -> bytes:
        """Return the frames in the order of the file, or frame by frame."""
        if self._needs_reordering:
            return np.moveaxis(frames, self._axis or 0, 0).tobytes()
        return frames.tobytes("F" if self._fortran else "C")

    def complete(self, part: PartialFile, frames: int) -> PartialFile:
        """Complete the file; frames not yet in order are copied to a second file, ``MAX_PIECE_BYTES`` at a time."""
        if not self._needs_reordering:
            part.amend(self.head(frames))
            return part
        try:
            whole = self._reordered_file(part, frames)
        except InputError as error:
            raise self._keep(part, frames, error) from error
        part.discard()
        return whole

    def _reordered_file(self, part: PartialFile, frames: int) -> PartialFile:
        whole = PartialFile(part.path)
        try:
            whole.amend(self.head(frames))
            self._put_in_order(part, whole, frames)
        except BaseException:
            whole.discard()
            raise
        return whole

    def _keep(self, part: PartialFile, frames: int, error: InputError) -> InputError:
        """Move the frames to a separate file. Returns an error that names it."""
        part.amend(self._head(self._move(self._shape_of(frames))))
        path = unused_name(part.path, "frames-first")
        part.publish(path)
        return InputError(
            f"{error}; the frames that came are in {path}, along its first axis: "
            f"numpy.moveaxis(frames, 0, {self._axis}) puts it where it belongs"
        )

    def _put_in_order(self, part: PartialFile, whole: PartialFile, frames: int) -> None:
        """Copy the frames in ``part``, in C order, into ``whole``."""
        size, row_bytes = len(self.head(0)), self._inner_size * self._dtype.itemsize
        step = max(MAX_PIECE_BYTES // (self._outer_size * row_bytes), 1)
        with part.temporary_path.open("rb") as unordered:
            unordered.seek(size)
            for first in range(0, frames, step):
                piece = np.fromfile(
                    unordered, self._dtype, min(step, frames - first) * self._outer_size * self._inner_size
                )
                rows = piece.reshape(-1, self._outer_size, self._inner_size)
                for row in range(self._outer_size):
                    whole.amend(rows[:, row].tobytes(), size + (row * frames + first) * row_bytes)

    def _shape_of(self, frames: int) -> tuple[int, ...]:
        return tuple(frames if axis == self._axis else size for axis, size in enumerate(self._shape))

    def _move(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Move the time axis to the front."""
        axis = self._axis or 0
        return (shape[axis], *shape[:axis], *shape[axis + 1 :])

    def _head(self, shape: tuple[int, ...]) -> bytes:
        return self._start + self._text(shape).ljust(self._header_bytes - 1) + b"\n"

    def _text(self, shape: tuple[int, ...]) -> bytes:
        described = np.lib.format.dtype_to_descr(self._dtype)
        return repr({"descr": described, "fortran_order": self._fortran, "shape": shape}).encode("latin1")


class TableFormat:
    """A table as text: one row per frame, its time or number first, below the names of the columns.

    rate_hz  frames per second, for the times; None numbers the frames
    """

    def __init__(self, first: Array, axis: int | None, rate_hz: float | None) -> None:
        self._axis, self._rate_hz = axis, rate_hz
        self._digits = MAX_TIME_DIGITS if rate_hz is None else time_digits(rate_hz)
        self._columns = prod(size for index, size in enumerate(first.shape) if index != axis)

    def head(self, frames: int) -> bytes:
        """Return the names of the columns."""
        is_single = self._columns == 1
        values = ["value"] if is_single else [f"value_{column}" for column in range(self._columns)]
        return _rows([["frame" if self._rate_hz is None else "time_s", *values]])

    def body(self, frames: Array, first_frame: int) -> bytes:
        """Return the rows of these frames, numbered from ``first_frame``."""
        rows = frames[None] if self._axis is None else np.moveaxis(frames, self._axis, 0)
        numbers_and_values = enumerate(rows.reshape(len(rows), self._columns).tolist(), first_frame)
        return _rows([self._time(frame), *values] for frame, values in numbers_and_values)

    def complete(self, part: PartialFile, frames: int) -> PartialFile:
        """Return ``part`` unchanged: a table needs no completion."""
        return part

    def _time(self, frame: int) -> int | str:
        return frame if self._rate_hz is None else f"{frame / self._rate_hz:.{self._digits}f}"


def time_digits(rate_hz: float) -> int:
    """Return the decimals of times in seconds: those that make each exact, or of a microsecond if none do.

    At least milliseconds are written
    """
    step_s = 1 / Fraction(rate_hz)
    digits = range(MIN_TIME_DIGITS, MAX_TIME_DIGITS)
    return next((count for count in digits if (step_s * 10**count).denominator == 1), MAX_TIME_DIGITS)


def _rows(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
