# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
"""The machine: calls the kernel of each row, in order.

``run`` and ``run_profiled`` take a linked table and addresses as plain ints, hold no GIL, and treat denormal
numbers as zero while they run. ``run_python`` takes an unlinked table and numpy regions, for tests.
"""

import functools
import time
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.cgutils import alloca_once
from numba.extending import intrinsic
from numpy.typing import NDArray

from pulse.jit.address import external, words_at
from pulse.jit.entries import Entry, entry
from pulse.jit.lanes import COUNT, LANE_WORDS, LaneBases
from pulse.jit.pointer_lowering import INT64, WORDS
from pulse.jit.registry import device, kernel_of
from pulse.program.table import Table, row_starts

INT32, BYTE_POINTER = ir.IntType(32), ir.PointerType(ir.IntType(8))
X86_FLUSH = 1 << 15 | 1 << 6  # MXCSR: denormal results become 0, denormal operands count as 0
ARM_FLUSH = 1 << 24  # FPCR: both
READINGS = 1000


def _architecture(builder) -> str:
    name = str(builder.module.triple).split("-")[0]
    return {"x86_64": "x86", "i386": "x86", "i686": "x86", "arm64": "aarch64"}.get(name, name)


def _float_mode(builder):
    if _architecture(builder) == "x86":
        slot = alloca_once(builder, INT32)
        store = external(builder, "llvm.x86.sse.stmxcsr", ir.VoidType(), BYTE_POINTER)
        builder.call(store, [builder.bitcast(slot, BYTE_POINTER)])
        return builder.zext(builder.load(slot), INT64)
    if _architecture(builder) == "aarch64":
        return builder.asm(ir.FunctionType(INT64, []), "mrs $0, fpcr", "=r", [], True)
    return INT64(0)


def _set_float_mode(builder, mode):
    if _architecture(builder) == "x86":
        slot = alloca_once(builder, INT32)
        builder.store(builder.trunc(mode, INT32), slot)
        load = external(builder, "llvm.x86.sse.ldmxcsr", ir.VoidType(), BYTE_POINTER)
        builder.call(load, [builder.bitcast(slot, BYTE_POINTER)])
    elif _architecture(builder) == "aarch64":
        builder.asm(ir.FunctionType(ir.VoidType(), [INT64]), "msr fpcr, $0", "r", [mode], True)


@intrinsic
def flush_denormals(typingctx):
    """Treat denormals as zero from here on; gives the mode before."""

    def build(context, builder, sig, args):
        before = _float_mode(builder)
        flush = X86_FLUSH if _architecture(builder) == "x86" else ARM_FLUSH
        _set_float_mode(builder, builder.or_(before, INT64(flush)))
        return before

    return types.int64(), build


@intrinsic
def restore_denormals(typingctx, mode):
    """Back to the mode that ``flush_denormals`` gave."""

    def build(context, builder, sig, args):
        _set_float_mode(builder, args[0])
        return context.get_dummy_value()

    return types.none(types.int64), build


@intrinsic
def _call(typingctx, kernel, row, bases):
    """Call the kernel at an address on a row."""

    def build(context, builder, sig, args):
        kernel, row, bases = args
        function = ir.FunctionType(ir.VoidType(), [row.type, bases.type])
        builder.call(builder.inttoptr(kernel, ir.PointerType(function)), [row, bases])
        return context.get_dummy_value()

    return types.none(types.int64, WORDS, WORDS), build


@intrinsic
def _ticks(typingctx):
    """The processor's time counter."""

    def build(context, builder, sig, args):
        if _architecture(builder) == "aarch64":
            return builder.asm(ir.FunctionType(INT64, []), "mrs $0, cntvct_el0", "=r", [], True)
        return builder.call(external(builder, "llvm.readcyclecounter", INT64), [])

    return types.int64(), build


@device
def run_rows(table_address, rows, bases_address):
    """``run`` for callers that are compiled themselves."""
    row, bases = words_at(table_address), words_at(bases_address)
    mode = flush_denormals()
    for _ in range(rows):
        _call(row[0], row, bases)
        row = row + row[1]
    restore_denormals(mode)


@entry("machine.run", 3)
def _run(table_address, rows, bases_address):
    run_rows(table_address, rows, bases_address)


@entry("machine.run_profiled", 4)
def _run_profiled(table_address, rows, bases_address, ticks_address):
    row, bases, ticks = words_at(table_address), words_at(bases_address), words_at(ticks_address)
    mode = flush_denormals()
    before = _ticks()
    for i in range(rows):
        _call(row[0], row, bases)
        after = _ticks()
        ticks[i] = ticks[i] + (after - before)
        before = after
        row = row + row[1]
    restore_denormals(mode)


@entry("machine.run_timed", 3, types.int64)
def _run_timed(table_address, rows, bases_address):
    before = _ticks()
    run_rows(table_address, rows, bases_address)
    return _ticks() - before


@entry("machine.run_lanes", 4)
def _run_lanes(table_address, segments_address, segments, bases_address):
    row, segment, bases = words_at(table_address), words_at(segments_address), words_at(bases_address)
    lanes = bases[COUNT]
    mode = flush_denormals()
    for _ in range(segments):
        rows = segment[0]
        if segment[1]:
            _call(row[0], row, bases)
            row = row + row[1]
        else:
            first = row
            for number in range(lanes):
                row = first
                for _ in range(rows):
                    _call(row[0], row, bases + LANE_WORDS * number)
                    row = row + row[1]
        segment = segment + 2
    restore_denormals(mode)


@entry("machine.read_ticks", 0, types.int64)
def _read_ticks():
    return _ticks()


@entry("machine.ticks_of_readings", 1, types.int64)
def _ticks_of_readings(count):
    first = last = _ticks()
    for _ in range(count):
        last = _ticks()
    return last - first


RUN: Entry = _run
"""The entry that every program needs."""


def runner() -> Callable[[int, int, int], None]:
    """The compiled form of ``run``, to hold on to where each call counts."""
    return RUN.call


def run(table_address: int, rows: int, bases_address: int) -> None:
    """Run ``rows`` rows of the linked table; bases: int64 addresses of the regions."""
    runner()(table_address, rows, bases_address)


def run_profiled(table_address: int, rows: int, bases_address: int, ticks_address: int) -> None:
    """``run``, adding the ticks that each row took to ``ticks[row]``, int64."""
    _run_profiled.call(table_address, rows, bases_address, ticks_address)


def run_timed(table_address: int, rows: int, bases_address: int) -> int:
    """``run``; the ticks that it took."""
    return _run_timed.call(table_address, rows, bases_address)


def lanes_runner() -> Callable[[int, int, int, int], None]:
    """What runs a table for several lanes: the addresses of table and segments, how many segments, the lanes' bases.

    A segment is two int64: rows, and whether (1) its one row is of a lane kernel; the rows of others run lane by lane.
    """
    return _run_lanes.call


@functools.cache
def ticks_per_second() -> float:
    """How fast the counter of ``run_profiled`` runs, in Hz; measured once, takes 20 ms."""
    read = _read_ticks.call
    start_ns, start = time.perf_counter_ns(), read()
    time.sleep(0.02)
    return (read() - start) * 1e9 / (time.perf_counter_ns() - start_ns)


@functools.cache
def seconds_per_reading() -> float:
    """What one reading of the counter takes, which ``run_profiled`` adds to each row; measured once, in a loop."""
    read = _ticks_of_readings.call
    return min(read(READINGS) for _ in range(20)) / READINGS / ticks_per_second()


def run_python(table: Table, regions: Sequence[NDArray[np.uint8]]) -> None:
    """Run an unlinked table as plain Python. Raises IndexError when a kernel leaves a region."""
    for start in row_starts(table):
        row = table[start : start + int(table[start + 1])]
        kernel_of(int(row[0])).python(row, regions)


def run_lanes_python(table: Table, lanes: Sequence[Sequence[NDArray[np.uint8]]]) -> None:
    """The same for several lanes, each with its regions; lane kernels where there are some."""
    words = [word for regions in lanes for word in (*regions, len(lanes))]
    for start in row_starts(table):
        row, kernel = table[start : start + int(table[start + 1])], kernel_of(int(table[start]))
        if kernel.lanes is not None:
            kernel.lanes.python(row, LaneBases(words))
            continue
        for regions in lanes:
            kernel.python(row, regions)
