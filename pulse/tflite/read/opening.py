"""From a path or bytes to a FileNetwork."""

import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pulse.errors import LoadError
from pulse.infer.network import FileNetwork
from pulse.support.budget import Budget, Spending, count_spending

MAX_FILE_BYTES = 2**31 - 1
"""Bytes: the offsets of a FlatBuffer reach no further."""


def load(
    source: "str | PathLike[str] | bytes",
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    budget: Mapping[str, float] | None = None,
    signature: str | None = None,
) -> FileNetwork:
    """Read a TFLite model from a path or its bytes; its variables are among its inputs and outputs.

    inputs, constants, budget   as in ``pulse.load``
    signature   which one of the file's to read; the first by default
    Raises   LoadError: the file cannot be read, or ``inputs``, ``constants`` or ``signature`` does not fit it
    """
    from pulse.onnx.read.inputs import check_given
    from pulse.tflite.read.reader import read

    check_given(inputs, constants)
    data, title = (source, "model") if isinstance(source, bytes) else _contents(Path(os.fspath(source)))
    with count_spending(Spending(Budget.of(budget))):
        return read(data, title, inputs or {}, constants or {}, signature)


def _contents(path: Path) -> tuple[bytes, str]:
    try:
        if not path.is_file():
            raise LoadError(f"{path}: no such file, or not a regular one; check the path")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise LoadError(f"{path}: {path.stat().st_size} bytes, and a TFLite file has less than 2 GiB")
        return path.read_bytes(), path.stem
    except OSError as error:
        raise LoadError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
