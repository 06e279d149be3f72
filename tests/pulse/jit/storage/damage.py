"""Damages the file of a kernel repeatedly, in a separate process; writes a line of JSON each time.

``python -m tests.pulse.jit.storage.damage SEED COUNT``, with PULSE_CACHE set to an empty folder.
"""

import ctypes
import json
import os
import random
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np

from pulse.jit.registry import Kernel
from pulse.jit.rows.instruction import Instruction, Operand, updates
from pulse.jit.rows.pointer import operand


class Scaling(Instruction):
    """An instruction that changes one number."""

    y: Operand = updates("f32", 1)


def doubles(row: Scaling) -> None:
    """Double y."""
    y = row.y
    y[0] = y[0] * 2


def halves(row: Scaling) -> None:
    """Halve y."""
    y = row.y
    y[0] = y[0] * 0.5


def flip_bit(data, chance):
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def scatter_bytes(data, chance):
    for _ in range(chance.randrange(2, 50)):
        data = flip_bit(data, chance)
    return data


BYTES = {
    "flipped": flip_bit,
    "scattered": scatter_bytes,
    "cut": lambda data, chance: data[: chance.randrange(len(data))],
    "empty": lambda data, chance: b"",
    "longer": lambda data, chance: data + chance.randbytes(chance.randrange(1, 5000)),
    "noise": lambda data, chance: chance.randbytes(len(data)),
    "shifted": lambda data, chance: data[chance.randrange(1, 100) :],
    "twice": lambda data, chance: data + data,
}
"""The damaged content of the file."""
FORMS = {
    "folder": lambda path: path.mkdir(),
    "full folder": lambda path: (path / "in" / "side").mkdir(parents=True),
    **({"pipe": os.mkfifo} if hasattr(os, "mkfifo") else {}),
    "dangling link": lambda path: path.symlink_to(path.parent / "nowhere"),
    "looping link": lambda path: path.symlink_to(path),
    "missing": lambda path: None,
}
"""Kind of file system entry -> function that puts it in place of the kernel file."""
KINDS = [*BYTES, "another kernel's", *FORMS]


def damage(path, kind, chance, whole, other):
    """Leave something at the path that is not what was written."""
    if kind in BYTES:
        changed = BYTES[kind](whole, chance)
        path.write_bytes(changed if changed != whole else b"")
    elif kind == "another kernel's":
        path.write_bytes(other)
    else:
        path.unlink()
        FORMS[kind](path)


def compile_and_call(function):
    """A kernel compiled again, run on a 3: the kernel, and its result."""
    kernel = Kernel(function.__name__, function, 0)
    y = np.full(1, 3, np.float32)
    row, bases = np.array([0, 3, operand(0, 0)]), np.array([y.ctypes.data])
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(kernel.address)
    call(row.ctypes.data, bases.ctypes.data)
    return kernel, float(y[0])


def main(seed, count):
    """Damage the file this many times, each kind in its turn."""
    chance = random.Random(seed)
    other = Path(compile_and_call(halves)[0].path()).read_bytes()
    path = Path(compile_and_call(doubles)[0].path())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for number in range(count):
            kind = KINDS[(seed + number) % len(KINDS)]
            print(json.dumps({"kind": kind}), end=" ", flush=True)
            damage(path, kind, chance, path.read_bytes(), other)
            kernel, value = compile_and_call(doubles)
            report = {
                "value": value,
                "from_disk": kernel.came_from_disk,
                "whole": kernel.is_cached,
                "again": compile_and_call(doubles)[0].came_from_disk,
            }
            print(json.dumps(report), flush=True)
    print(json.dumps([str(warning.message) for warning in warned]))
    print(json.dumps(sorted(file.name for file in path.parent.iterdir())))
    shutil.rmtree(path.parent)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
