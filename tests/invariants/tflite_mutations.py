"""Broken .tflite files, by number: bytes and words of good files changed at random."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.pulse.tflite import layered_models, recurrent_models
from tests.pulse.tflite.builder import KINDS, SubgraphBuilder, file_bytes
from tests.pulse.tflite.cases.families import all_cases

WORDS = (
    0,
    1,
    2,
    3,
    4,
    8,
    0xFF,
    0xFFFF,
    1 << 16,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    (1 << 32) - 4,
)
SIZES = (-(1 << 31), -1000, -2, -1, 0, 1, 2, 3, 5, 7, 100, 1 << 20, (1 << 31) - 1)
SCALES = (0.0, -1.0, 1e-30, 1e-9, 1.0, 1e9, float("inf"), float("nan"))
OPTION = (-1, 127)
EACH = 4
"""One of this many models of a single operator is a seed."""


@cache
def seeds() -> tuple[bytes, ...]:
    """Good files: of single operators, and with open time, variables, loops and recurrent layers."""
    kinds = ("float32", "int8")
    whole = [layered_models.stack(kind) for kind in kinds] + [
        layered_models.convolution_with_variable(kind) for kind in kinds
    ]
    whole += [layered_models.filter_bank(kind) for kind in kinds] + [
        recurrent_models.recurrent(kind) for kind in ("lstm", "rnn")
    ]
    whole += [
        layered_models.counting_loop(),
        layered_models.counting_loop(None),
        recurrent_models.recurrent("lstm", -1),
        recurrent_models.unfused_layer(),
    ]
    return (*whole * 3, *map(file_bytes, graphs()[::EACH]))


@cache
def graphs() -> tuple[SubgraphBuilder, ...]:
    """Good graphs of single operators."""
    return tuple(case.graph for case in all_cases())


def mutated_file(number: int) -> bytes:
    """A file with a few changes: of its bytes and words, or of the shapes, options and wires that it says."""
    rng = np.random.default_rng(number)
    return (
        _said_otherwise(rng)
        if number % 2
        else damage(rng, bytearray(seeds()[int(rng.integers(len(seeds())))]))
    )


def damage(rng: np.random.Generator, data: bytearray) -> bytes:
    for _ in range(int(rng.integers(1, 3))):
        kind, offset = rng.integers(8), int(rng.integers(8, len(data)))
        if kind < 3:
            data[offset] = int(rng.integers(256))
        elif kind < 5:
            data[offset] ^= 1 << int(rng.integers(8))
        elif kind < 7:
            offset = offset // 4 * 4
            word = (
                int(rng.choice(np.array(WORDS, np.uint64)))
                if rng.random() < 0.6
                else int(rng.integers(len(data)))
            )
            data[offset : offset + 4] = word.to_bytes(4, "little")[: len(data) - offset]
        else:
            return bytes(data[:offset])
    return bytes(data)


def _said_otherwise(rng: np.random.Generator) -> bytes:
    """A whole file of a graph that is wrong."""
    graph = deepcopy(graphs()[int(rng.integers(len(graphs())))])
    for _ in range(int(rng.integers(1, 3))):
        tensor = graph.tensors[int(rng.integers(len(graph.tensors)))]
        operator = graph.operators[int(rng.integers(len(graph.operators)))]
        size = int(rng.choice(SIZES))
        kind = rng.integers(7)
        if kind == 0 and len(tensor.shape):
            index = int(rng.integers(len(tensor.shape)))
            tensor.shape = [*tensor.shape[:index], size, *tensor.shape[index + 1 :]]
        elif kind == 1 and tensor.data is not None and tensor.data.size and tensor.data.dtype.kind in "iu":
            values = tensor.data.copy()
            values.ravel()[int(rng.integers(values.size))] = np.clip(size, *_range(values.dtype))
            tensor.data = values
        elif kind == 2 and operator.fields:
            name = str(rng.choice(sorted(operator.fields)))
            if type(operator.fields[name]) is int:
                operator.fields = {**operator.fields, name: int(np.clip(size, *OPTION))}
        elif kind == 3:
            operator.inputs = [int(rng.integers(-1, len(graph.tensors) + 1)) for _ in operator.inputs]
        elif kind == 4:
            operator.inputs = list(operator.inputs)[: int(rng.integers(len(operator.inputs) + 1))]
        elif kind == 5 and len(tensor.scale):
            tensor.scale = [float(rng.choice(SCALES))] * len(tensor.scale)
        elif kind == 6:
            tensor.kind = str(rng.choice(sorted(KINDS)))
    return file_bytes(graph)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def write(folder: Path, start: int, stop: int) -> None:
    """Write the mutated files of a range of seeds."""
    folder.mkdir(parents=True)
    for number in range(start, stop):
        (folder / f"{number:05}.tflite").write_bytes(mutated_file(number))
