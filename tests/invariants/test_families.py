"""Families of operators: the same names in every folder that goes by them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAMILIES: Mapping[str, str] = {
    "elementwise": "functions of single entries, casts, bits",
    "reduce": "reductions, places of an extreme",
    "norm": "softmax, normalisations",
    "matmul": "matrix products, sums of products",
    "conv": "convolutions and their transposes",
    "pool": "pools over windows",
    "recurrent": "RNN, GRU, LSTM",
    "cumulative": "running sums and products",
    "scan": "bodies that run for every frame",
    "control": "branches and loops",
    "attention": "attention, positions by rotation",
    "spectral": "Fourier transforms, filter banks",
    "shape": "reshapes, transposes, shapes as tensors",
    "slice": "slices, splits, reversals",
    "concat": "joins",
    "pad": "padding",
    "gather": "entries read by index",
    "scatter": "entries written by index",
    "search": "largest entries, selections, masks made from indices",
    "resize": "resizing",
    "time": "delays, positions, ends, lengths: what pulsed models have",
    "quantize": "codes with a scale, products of codes",
    "source": "inputs, constants, ranges",
    "fault": "values that have no result, counted",
}
"""Each family, and what is in it."""

FOLDERS: Mapping[str, frozenset[str]] = {
    "pulse/ops": frozenset({"arithmetic", "bodies", "check", "generic", "op", "stateful"}),
    "pulse/onnx/operators": frozenset(),
    "pulse/tensorflow/operators": frozenset(),
    "pulse/tflite/operators": frozenset(),
    "pulse/nnef/operators": frozenset(),
    "pulse/program/lower": frozenset({"stream_state"}),
    "pulse/program/kernels": frozenset({"copy", "dtypes", "families", "vmath"}),
    "tests/pulse/cases": frozenset({"build", "families"}),
}
"""Each folder that goes by families, and what all families in it are made of."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_bear_the_name_of_their_family(folder: str) -> None:
    names = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}
    shared = FOLDERS[folder]
    assert shared < names
    strange = {name for name in names - shared if name.partition("_")[0] not in FAMILIES}
    assert not strange, (
        f"{folder}: {sorted(strange)}: a file is family.py or family_part.py, of the list above"
    )


def test_every_family_is_there() -> None:
    found = {path.stem.partition("_")[0] for folder in FOLDERS for path in (ROOT / folder).glob("*.py")}
    assert set(FAMILIES) <= found
