"""Means and scales of features, as files hold them."""

import re
from os import PathLike
from pathlib import Path

import numpy as np

from pulse.errors import InputError, LoadError
from pulse.facts import Array
from pulse.support.file_bytes import file_bytes
from pulse.support.wording import count_of

MAX_FILE_BYTES = 1 << 20
"""Maximum number of bytes of a file of statistics, which has two rows of some hundred numbers."""
MIN_VARIANCE = 1e-20
"""A smaller variance counts as this one, so that constant features stay finite."""
STATISTICS_FORMATS = ("auto", "kaldi", "funasr")
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def read_statistics(function: str, path: "str | PathLike[str]", file_format: str) -> tuple[Array, Array]:
    """Return the shift and then the scale of each bin, f64 [bins].

    file_format  ``kaldi``: sums and sums of squares, binary or text, alone or after a key; ``funasr``: ``am.mvn``
    Raises   InputError: no such file, or not of this format
    """
    try:
        data = file_bytes(
            Path(path), MAX_FILE_BYTES, "more than statistics have; give the file of statistics"
        )
    except (LoadError, TypeError) as error:
        raise InputError(f"{function}: the statistics {path!r} cannot be read: {error}") from error
    if file_format == "auto":
        file_format = "funasr" if b"<AddShift>" in data else "kaldi"
    try:
        return _funasr(data) if file_format == "funasr" else _kaldi(data)
    except ValueError as error:
        raise InputError(
            f"{function}: {path} contains no statistics of the format {file_format!r}: {error}"
        ) from error


def _kaldi(data: bytes) -> tuple[Array, Array]:
    """Return the statistics of a matrix [2, bins + 1]: sums and the count, sums of squares and nothing."""
    matrix = _read_binary(data) if b"\0B" in data[:256] else _text(data)
    if matrix.ndim != 2 or matrix.shape[0] not in (1, 2) or matrix.shape[1] < 2:
        raise ValueError(f"a matrix of shape {list(matrix.shape)} instead of 2 rows")
    frames = matrix[0, -1]
    if not np.isfinite(matrix).all() or frames < 1:
        raise ValueError(f"a count of {frames:g} frames, or numbers that are not finite")
    mean = matrix[0, :-1] / frames
    if len(matrix) == 1:
        return -mean, np.ones_like(mean)
    variance = np.maximum(matrix[1, :-1] / frames - mean**2, MIN_VARIANCE)
    return -mean, 1 / np.sqrt(variance)


def _read_binary(data: bytes) -> Array:
    start = data.index(b"\0B") + 2
    dtypes = {b"FM ": np.dtype("<f4"), b"DM ": np.dtype("<f8")}
    dtype = dtypes.get(data[start : start + 3])
    if dtype is None or data[start + 3 : start + 4] != b"\4" or data[start + 8 : start + 9] != b"\4":
        raise ValueError(f"its matrix begins with {data[start : start + 9]!r}; f32 and f64 are supported")
    rows, columns = (int.from_bytes(data[start + k : start + k + 4], "little", signed=True) for k in (4, 9))
    if rows < 0 or columns < 0 or rows * columns * dtype.itemsize > len(data) - start - 13:
        raise ValueError(
            f"it announces {count_of(rows, 'row')} of {count_of(columns, 'number')}, but is shorter"
        )
    return np.frombuffer(data, dtype, rows * columns, start + 13).reshape(rows, columns).astype(np.float64)


def _text(data: bytes) -> Array:
    match = re.search(r"\[([^\[\]]*)\]", data.decode("utf-8", "replace"))
    if match is None:
        raise ValueError("it has no matrix in brackets")
    rows = [_numbers(line) for line in match.group(1).splitlines() if line.strip()]
    if len({len(row) for row in rows}) != 1:
        raise ValueError("the rows of its matrix have different lengths")
    return np.array(rows)


def _funasr(data: bytes) -> tuple[Array, Array]:
    """Read ``<AddShift>`` and ``<Rescale>``, each with a vector in brackets."""
    text = data.decode("utf-8", "replace")
    vectors: list[Array] = []
    for name in ("AddShift", "Rescale"):
        match = re.search(rf"<{name}>[^\[]*\[([^\[\]]*)\]", text)
        if match is None:
            raise ValueError(f"it has no <{name}> with a vector in brackets")
        vectors.append(np.array(_numbers(match.group(1))))
    shift, scale = vectors
    if not len(shift) or shift.shape != scale.shape or not (np.isfinite(shift) & np.isfinite(scale)).all():
        raise ValueError(f"{count_of(len(shift), 'shift')} and {count_of(len(scale), 'scale')}")
    return shift, scale


def _numbers(text: str) -> list[float]:
    words = text.split()
    wrong = next((word for word in words if re.fullmatch(NUMBER, word) is None), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not a number")
    return [float(word) for word in words]
