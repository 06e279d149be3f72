"""From a path or bytes to a FileNetwork."""

import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pulse.infer.network import FileNetwork
from pulse.support.budget import Budget, Spending, count_spending
from pulse.support.file_bytes import MAX_MODEL_BYTES, file_bytes


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
    if isinstance(source, bytes):
        data, title = source, "model"
    else:
        path = Path(os.fspath(source))
        data, title = file_bytes(path, MAX_MODEL_BYTES, "a TFLite file has less than 2 GiB"), path.stem
    with count_spending(Spending(Budget.of(budget))):
        return read(data, title, inputs or {}, constants or {}, signature)
