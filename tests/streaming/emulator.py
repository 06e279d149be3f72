"""Another processor, by qemu's emulation of programs: it runs the rows of a program with a library's kernels."""

import ctypes
import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from numpy.typing import NDArray

from pulse.jit.lane_bases import LANE_COUNT_WORD, LANE_WORDS
from pulse.jit.registry import kernel_of
from pulse.jit.storage.package_library import symbol_of
from pulse.program.machine import machine
from pulse.program.native import native_state
from pulse.program.native.kernel_program import KernelProgram
from pulse.program.table.memory import Region
from pulse.program.table.table import row_starts

SOURCE = Path(__file__).parent / "emulator.c"


@dataclass(frozen=True)
class Emulated:
    """How a level's processor is emulated: the C compiler for it, and the command that runs its programs."""

    compiler: str
    command: Sequence[str]

    def require(self) -> None:
        """Skip the test where a program is missing."""
        for program in (self.compiler, self.command[0]):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed")


PROCESSORS = {
    "x86-64-v2": Emulated("x86_64-linux-gnu-gcc", ("qemu-x86_64", "-cpu", "Nehalem")),
    "x86-64-v3": Emulated("x86_64-linux-gnu-gcc", ("qemu-x86_64", "-cpu", "Haswell")),
    "aarch64": Emulated("aarch64-linux-gnu-gcc", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")),
}
"""Processors with the features of a level and without those of the next; qemu has no AVX-512."""


class Emulator:
    """The machine of a level: stands for ``machine.runner()`` and ``machine.lanes_runner()``.

    kernels    the names of all that it has
    ran        those that it has run
    """

    def __init__(self, level: str, library: Path, kernels: Sequence[str], folder: Path) -> None:
        emulated = PROCESSORS[level]
        runner = folder / "emulator"
        options = ("-O1", "-rdynamic", "-Wl,--no-as-needed", "-o", str(runner), str(SOURCE), "-ldl", "-lm")
        subprocess.run([emulated.compiler, *options], check=True)
        self.kernels = set(kernels)
        self.ran: set[str] = set()
        self._numbers = {name: number for number, name in enumerate(kernels)}
        self._process = subprocess.Popen(
            [*emulated.command, str(runner), str(library), *map(symbol_of, kernels)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    @contextmanager
    def run_here(self, program: KernelProgram) -> Generator[None]:
        """Streams of the program that begin and step in here run on it; those that began before step natively."""

        def run(table: int, rows: int, bases: int) -> None:
            words = np.array([*_words(bases, LANE_COUNT_WORD), 1])
            self._call(program, np.array([rows, 0]), words, single=True)

        def run_lanes(table: int, segments: int, count: int, bases: int) -> None:
            lanes = int(_words(bases, LANE_WORDS)[LANE_COUNT_WORD])
            self._call(program, _words(segments, 2 * count), _words(bases, LANE_WORDS * lanes), single=False)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(machine, "runner", lambda: run)
            patch.setattr(machine, "lanes_runner", lambda: run_lanes)
            # a compiled step knows no other machine
            patch.setattr(native_state, "arrays_are_known", lambda: False)
            yield

    def _call(
        self, program: KernelProgram, segments: NDArray[np.int64], bases: NDArray[np.int64], single: bool
    ) -> None:
        sizes = {
            Region.WEIGHTS: program.weights.size,
            Region.STATE: program.initial.size,
            Region.ARENA: program.arena_bytes,
        }
        lanes = bases.reshape(-1, LANE_WORDS)
        memories = [
            _bytes(int(lane[region]), sizes[region])
            for lane in lanes
            for region in (Region.STATE, Region.ARENA)
        ]
        table = self.numbered_table(program, single)
        head = np.array([*sizes.values(), len(table), len(segments) // 2, len(lanes)])
        to_process, from_process = self._process.stdin, self._process.stdout
        assert to_process
        assert from_process
        for part in (head, table, segments, program.weights, *memories):
            to_process.write(part.tobytes())
        to_process.flush()
        for memory in memories:
            answer = from_process.read(memory.size)
            assert len(answer) == memory.size, (self._process.wait(10), self._process.args)
            memory[:] = np.frombuffer(answer, np.uint8)

    def numbered_table(self, program: KernelProgram, single: bool) -> NDArray[np.int64]:
        """The table with the numbers of the library's symbols in place of kernels."""
        table = program.unlinked.copy()
        for start in row_starts(table):
            kernel = kernel_of(int(table[start]))
            kernel = kernel if single else kernel.lanes or kernel
            self.ran.add(kernel.name)
            table[start] = self._numbers[kernel.name]
        return table


def _bytes(address: int, size: int) -> NDArray[np.uint8]:
    """The bytes that are left, to read and to write."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _words(address: int, count: int) -> NDArray[np.int64]:
    return _bytes(address, 8 * count).view(np.int64)
