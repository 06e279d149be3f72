"""Arrays of frames in files: .npy and .npz to read, .npy and .csv to write."""

import csv
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from streaming.replacing import part_of, publish

READABLE = (".npy", ".npz")
WRITABLE = (".npy", ".csv")


def read_arrays(path: Path, names: list[str]) -> dict[str, Array]:
    """The arrays of a file, by input. A .npy holds one; a .npz any number, by name. Raises InputError."""
    if not path.exists():
        raise InputError(f"{path}: no such file; check the path")
    try:
        with path.open("rb") as file:
            loaded: Any = np.load(file, allow_pickle=False)
            if path.suffix.lower() == ".npz":
                return {str(name): loaded[name] for name in loaded.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: cannot be read as {path.suffix} ({reason})") from error
    if len(names) != 1:
        raise InputError(
            f"{path}: one array where the model has {len(names)} inputs; give a .npz with {', '.join(names)}"
        )
    return {names[0]: loaded}


class FramesFile:
    """Frames to write; the file appears under its name only when the ``with`` block ends well and there are any.

    path     .npy: the array as the model gives it; .csv: a row a frame, the time or number of the frame first
    axis     the axis of frames; None for a tensor without time
    rate_hz  frames a second, for the times; None numbers the frames
    Raises   InputError: another suffix, or a folder that cannot be written to
    """

    def __init__(self, path: Path, axis: int | None, rate_hz: float | None) -> None:
        if path.suffix.lower() not in WRITABLE:
            raise InputError(
                f"{path}: frames are written as {' or '.join(WRITABLE)}, not {path.suffix or 'this'}"
            )
        self.path = path
        self._axis = axis
        self._rate_hz = rate_hz
        self._pieces: list[Array] = []
        if not path.absolute().parent.is_dir():
            raise InputError(f"{path}: no such folder; make it first")

    def write(self, frames: Array) -> None:
        """Append frames."""
        self._pieces.append(frames)

    def __enter__(self) -> "FramesFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._pieces:
            self._save(self._pieces[-1] if self._axis is None else np.concatenate(self._pieces, self._axis))

    def _save(self, array: Array) -> None:
        part = part_of(self.path)
        try:
            if self.path.suffix.lower() == ".npy":
                with part.open("wb") as file:
                    np.save(file, array, allow_pickle=False)
            else:
                self._save_table(part, array)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from error
        publish(part, self.path)

    def _save_table(self, part: Path, array: Array) -> None:
        rows = array.reshape(1, -1) if self._axis is None else np.moveaxis(array, self._axis, 0)
        rows = rows.reshape(len(rows), -1)
        values = ["value"] if rows.shape[1] == 1 else [f"value_{column}" for column in range(rows.shape[1])]
        with part.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["frame" if self._rate_hz is None else "time_s", *values])
            for number, row in enumerate(rows.tolist()):
                table.writerow([number if self._rate_hz is None else f"{number / self._rate_hz:.6f}", *row])
