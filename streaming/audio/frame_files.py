"""Arrays of frames in files: .npy and .npz to read, .npy and .csv to write."""

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import Port
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of
from streaming.audio.frame_formats import FrameFormat, NpyFormat, TableFormat
from streaming.files.atomic import kind_of
from streaming.files.partial import PartialFile

READABLE = (".npy", ".npz")
WRITABLE = (".npy", ".csv")


def read_arrays(path: Path, names: list[str]) -> dict[str, Array]:
    """Read the arrays of a file, by input. A .npy holds one; a .npz any number, by name.

    Raises InputError: the file cannot be read
    """
    if not path.exists():
        raise InputError(f"{path}: no such file; check the path")
    try:
        with path.open("rb") as file:
            loaded: Any = np.load(file, allow_pickle=False)
            if path.suffix.lower() == ".npz":
                return {str(name): loaded[name] for name in loaded.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path}: cannot be read as {path.suffix} ({reason}); write numbers with numpy.save or numpy.savez"
        ) from error
    if len(names) != 1:
        raise InputError(
            f"{path}: one array, but the model has {count_of(len(names), 'input')}; give a .npz with {', '.join(names)}"
        )
    return {names[0]: loaded}


def add_leading_axes(arrays: Mapping[str, Array], ports: Iterable[Port]) -> dict[str, Array]:
    """Return arrays of streams with the leading axes of size 1 of their ports, where only these are missing."""
    completed = dict(arrays)
    for port in ports:
        array = arrays.get(port.name)
        missing = 0 if array is None else len(port.shape) - array.ndim
        if array is None or missing < 1 or port.axis is None or port.axis < missing:
            continue
        sizes = zip(array.shape, port.shape[missing:])
        others_fit = all(
            size == other for axis, (size, other) in enumerate(sizes, missing) if axis != port.axis
        )
        if others_fit and all(size == 1 for size in port.shape[:missing]):
            completed[port.name] = array.reshape((1,) * missing + array.shape)
    return completed


class FramesFile(NotCopyable, reason="it writes one file; make another one with another path"):
    """A file of frames, written in blocks; it appears when the ``with`` block ends without error and wrote frames.

    path     .npy: the array as the model returns it; .csv: one row per frame, its time or number first
    axis     the time axis; None for a tensor without time
    rate_hz  frames per second, for the times; None numbers the frames
    Raises   InputError: an unknown suffix, or a folder that cannot be written to

    Memory use is constant. A .npy whose frames are on neither the first nor the last of its axes needs twice its size
    on the disk at the end; without it, the error names the file that has the frames in another order.
    """

    def __init__(self, path: Path, axis: int | None, rate_hz: float | None) -> None:
        if path.suffix.lower() not in WRITABLE:
            raise InputError(f"{path}: frames are written as {' or '.join(WRITABLE)}, not {kind_of(path)}")
        if not path.absolute().parent.is_dir():
            raise InputError(f"{path}: no such folder; make it first")
        self.path = path
        self._axis = axis
        self._rate_hz = rate_hz
        self._part = PartialFile(path)
        self._format: FrameFormat | None = None
        self._layout: tuple[object, ...] = ()
        self._frames = 0

    def write(self, frames: Array) -> None:
        """Append frames; a tensor without time replaces the previous one.

        Raises InputError: for instance, the disk is full. Earlier frames stay, and none of these are written.
        """
        if self._axis is None:
            self._replace(frames)
            return
        frame_format = self._format or self._format_of(frames)
        self._require_layout(frames)
        body = frame_format.body(frames, self._frames)
        self._part.append(body if frame_format is self._format else frame_format.head(0) + body)
        self._format = frame_format
        self._frames += frames.shape[self._axis]

    def _replace(self, tensor: Array) -> None:
        """Write through a second file, so that the earlier file exists until the new one is complete."""
        frame_format, part = self._format_of(tensor), PartialFile(self.path)
        try:
            part.append(frame_format.head(0) + frame_format.body(tensor, 0))
        except BaseException:
            part.discard()
            raise
        self._part.discard()
        self._format, self._part = frame_format, part

    def __enter__(self) -> "FramesFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None or self._format is None:
            self._part.discard()
            return
        try:
            whole = self._format.complete(self._part, self._frames)
        except BaseException:
            self._part.discard()
            raise
        whole.publish()

    def _format_of(self, first: Array) -> FrameFormat:
        if self.path.suffix.lower() == ".npy":
            return NpyFormat(first, self._axis)
        return TableFormat(first, self._axis, self._rate_hz)

    def _require_layout(self, frames: Array) -> None:
        """Raise InputError if frames do not match earlier ones."""
        sizes = (size for axis, size in enumerate(frames.shape) if axis != self._axis)
        layout = (frames.dtype, *sizes)
        if self._format is not None and layout != self._layout:
            raise InputError(
                f"{self.path}: {frames.dtype} {list(frames.shape)} does not fit the earlier frames: the type, or "
                "a size other than the time axis, differs; write these to a separate file"
            )
        self._layout = layout
