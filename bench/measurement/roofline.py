"""The minimum time that a step can take on this machine: its bytes at the measured bandwidth, its products at the peak.

Both are measured with kernels of the kind that the programs are made of, one thread.
"""

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import LANES, vfma, vload, vsplat, vstore, vzero
from pulse.jit.registry import Kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import operand
from pulse.program.native.native_program import NativeProgram
from pulse.program.table.cost import Cost, cost_of
from pulse.support.mapping import aligned_bytes

SIZES = tuple(1 << power for power in range(14, 27))
"""Bytes of the working sets that bandwidth is measured with: 16 KiB to 64 MiB."""

READ_BYTES = 1 << 26
"""Bytes that each measurement of bandwidth reads at least, as often as its working set needs."""
MIN_BYTES = 1 << 19
"""What a reading of a small working set reads at least, so that its call counts little."""

BLOCK_BYTES = 8 * 4 * LANES
"""What the reading kernel reads at once."""

FMA_ROUNDS = 200_000
"""Rounds of the measurement of the peak; in each, every chain makes one fused multiply-add."""
INDEPENDENT_CHAINS = 12
"""Independent chains of multiply-adds, as many as hide the latency of one."""
REPEATS = 5
"""Times that a measurement is repeated; the best one counts."""


class Read(Instruction):
    """Add up x, of ``size`` floats (a multiple of 128), this many times; the sum goes to y."""

    x: Operand = reads("f32", "size")
    y: Operand = writes("f32", LANES)
    size: int
    times: int


def _read(row: Read) -> None:
    start, y, size = row.x, row.y, row.size
    a, b, c, d, e, f, g, h = vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    for _ in range(row.times):
        x, i = start, 0
        while i < size:
            a, b = a + vload(x, 0), b + vload(x, LANES)
            c, d = c + vload(x, 2 * LANES), d + vload(x, 3 * LANES)
            e, f = e + vload(x, 4 * LANES), f + vload(x, 5 * LANES)
            g, h = g + vload(x, 6 * LANES), h + vload(x, 7 * LANES)
            x, i = x + 8 * LANES, i + 8 * LANES
        vstore(y, 0, ((a + b) + (c + d)) + ((e + f) + (g + h)))


class MultiplyAdd(Instruction):
    """Twelve chains of products and sums in registers, this many rounds; factor and summand are in x."""

    x: Operand = reads("f32", 2)
    y: Operand = writes("f32", LANES)
    rounds: int


def _multiply_add(row: MultiplyAdd) -> None:
    x, y = row.x, row.y
    m, s = vsplat(x[0]), vsplat(x[1])
    a, b, c, d, e, f = s, s + 1.0, s + 2.0, s + 3.0, s + 4.0, s + 5.0
    g, h, i, j, k, l = s + 6.0, s + 7.0, s + 8.0, s + 9.0, s + 10.0, s + 11.0
    for _ in range(row.rounds):
        a, b, c, d = vfma(a, m, s), vfma(b, m, s), vfma(c, m, s), vfma(d, m, s)
        e, f, g, h = vfma(e, m, s), vfma(f, m, s), vfma(g, m, s), vfma(h, m, s)
        i, j, k, l = vfma(i, m, s), vfma(j, m, s), vfma(k, m, s), vfma(l, m, s)
    vstore(y, 0, (((a + b) + (c + d)) + ((e + f) + (g + h))) + ((i + j) + (k + l)))


READ = Kernel("bench_read", _read, -1)
"""The kernel that reads a working set."""
MULTIPLY_ADD = Kernel("bench_multiply_add", _multiply_add, -1)
"""The kernel of the peak: multiply-adds in registers."""


class Call:
    """A kernel with its own memory, ready to be called and timed.

    memories   operands, one region each, from their beginning
    arguments  the numbers after them in the row
    """

    def __init__(self, kernel: Kernel, memories: Sequence[NDArray[np.uint8]], *arguments: int) -> None:
        words = [operand(region, 0) for region in range(len(memories))]
        self._row = np.array([0, 0, *words, *arguments], np.int64)
        self._bases = np.array([memory.ctypes.data for memory in memories], np.int64)
        self._memories = memories
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(kernel.address)
        self._addresses = self._row.ctypes.data, self._bases.ctypes.data

    def __call__(self) -> None:
        self._function(*self._addresses)

    def seconds(self) -> float:
        """Return the shortest of five calls."""
        self()
        best = np.inf
        for _ in range(REPEATS):
            started_s = time.perf_counter()
            self()
            best = min(best, time.perf_counter() - started_s)
        return float(best)


class BandwidthProbe(Call):
    """Reads a working set from its beginning to its end, several times if it is small; ``bytes`` in all."""

    def __init__(self, set_bytes: int, min_bytes: int = MIN_BYTES) -> None:
        size = -(-set_bytes // BLOCK_BYTES) * BLOCK_BYTES
        passes = max(1, min_bytes // size)
        self.bytes = size * passes
        memory = aligned_bytes(size)
        memory.view(np.float32)[:] = 0.5
        super().__init__(READ, [memory, aligned_bytes(4 * LANES)], size // 4, passes)


@dataclass(frozen=True)
class Machine:
    """The bandwidth and speed of one thread of this machine.

    bandwidth  pairs of bytes of the working set and bytes per second, by rising size
    multiply_adds_per_s  f32
    """

    bandwidth: tuple[tuple[int, float], ...]
    multiply_adds_per_s: float


@dataclass(frozen=True)
class Roofline:
    """The minimum bytes and operations of a step, and the time that they take.

    bytes          bytes of weights and state, each instruction's once
    working_set    bytes of weights, state and arena
    multiply_adds  multiply-adds of a step
    memory_us, arithmetic_us  minimum time for the bytes, and for the multiply-adds
    """

    bytes: int
    working_set: int
    multiply_adds: int
    memory_us: float
    arithmetic_us: float

    @property
    def min_us(self) -> float:
        """The larger of the two times."""
        return max(self.memory_us, self.arithmetic_us)

    @property
    def bound(self) -> str:
        """Which of the two limits the step."""
        return "memory" if self.memory_us >= self.arithmetic_us else "arithmetic"


def working_set(program: NativeProgram, lanes: int = 1) -> int:
    """Return the bytes of weights, and of each lane's state and arena: the memory that each step uses."""
    return program.weights.size + lanes * (program.state_bytes + program.arena_bytes)


def roofline(
    program: NativeProgram, bytes_per_s: float, multiply_adds_per_s: float, lanes: int = 1
) -> Roofline:
    """Return the minimum time of a step, on memory that delivers its working set at some speed; weights count once."""
    total = sum((cost_of(row) for row in program.instructions), Cost())
    bytes_touched = total.weights + lanes * total.state
    multiply_adds = lanes * total.multiply_adds
    return Roofline(
        bytes_touched,
        working_set(program, lanes),
        multiply_adds,
        bytes_touched / bytes_per_s * 1e6,
        multiply_adds / multiply_adds_per_s * 1e6,
    )


def measured_machine(
    sizes: Sequence[int] = SIZES, read_bytes: int = READ_BYTES, rounds: int = FMA_ROUNDS
) -> Machine:
    """Measure this machine: the best of five readings of each working set, and of the products."""
    readings = [(size, BandwidthProbe(size, read_bytes)) for size in sizes]
    bandwidth = tuple((size, reading.bytes / reading.seconds()) for size, reading in readings)
    factors, result = aligned_bytes(4 * LANES), aligned_bytes(4 * LANES)
    factors.view(np.float32)[:] = 0.5
    seconds = Call(MULTIPLY_ADD, [factors, result], rounds).seconds()
    return Machine(bandwidth, INDEPENDENT_CHAINS * LANES * rounds / seconds)
