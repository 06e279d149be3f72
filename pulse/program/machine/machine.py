# pyright: basic, reportArgumentType=false, reportCallIssue=false
"""The machine: the loop that calls the kernel of each row, in order.

``run`` and ``run_profiled`` take a linked table and addresses as plain ints. They run without the GIL and treat
denormal numbers as zero. ``run_python`` takes an unlinked table and numpy regions, for tests.
"""

import functools
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pulse.jit.entries import Entry, entry
from pulse.jit.lane_bases import LANE_WORDS, lane_bases_at
from pulse.jit.language.address import words_at
from pulse.jit.language.cpu_registers import flush_denormals, restore_denormals, tick_count
from pulse.jit.language.foreign import c_function_at, c_signature
from pulse.jit.registry import device, kernel_of
from pulse.jit.rows.fields import WORD_BYTES
from pulse.program.table.table import RowTable, row_at, row_starts, segments_at

CALIBRATION_READINGS = 1000
"""The readings of the counter whose time is measured together."""

run_row = c_function_at(c_signature("address", "address", "address"))
"""Call the kernel at an address with the addresses of a row and of the memory bases; returns null, like numba's.

WebAssembly checks this type at each call, and has 32-bit pointers.
"""


@device
def run_rows(table_address: int, rows: int, bases_address: int) -> None:
    """Run all rows, each by its kernel; denormal numbers are zero meanwhile."""
    address, mode = table_address, flush_denormals()
    for _ in range(rows):
        row = row_at(address)
        run_row(row.kernel, address, bases_address)
        address += WORD_BYTES * row.length
    restore_denormals(mode)


@entry("machine.run", 3)
def _run(table_address, rows, bases_address):
    run_rows(table_address, rows, bases_address)


@entry("machine.run_profiled", 4)
def _run_profiled(table_address, rows, bases_address, ticks_address):
    address, ticks = table_address, words_at(ticks_address)
    mode = flush_denormals()
    start = tick_count()
    for i in range(rows):
        row = row_at(address)
        run_row(row.kernel, address, bases_address)
        stop = tick_count()
        ticks[i] = ticks[i] + (stop - start)
        start = stop
        address += WORD_BYTES * row.length
    restore_denormals(mode)


@entry("machine.run_timed", 3, returns="int")
def _run_timed(table_address, rows, bases_address):
    start = tick_count()
    run_rows(table_address, rows, bases_address)
    return tick_count() - start


@entry("machine.run_lanes", 4)
def _run_lanes(table_address, segments_address, segments, bases_address):
    address, lanes = table_address, lane_bases_at(bases_address).lanes
    mode = flush_denormals()
    for index in range(segments):
        segment = segments_at(segments_address)[index]
        if segment.lanes_at_once:
            row = row_at(address)
            run_row(row.kernel, address, bases_address)
            address += WORD_BYTES * row.length
        else:
            first = address
            for lane in range(lanes):
                address = first
                for _ in range(segment.rows):
                    row = row_at(address)
                    run_row(row.kernel, address, bases_address + WORD_BYTES * LANE_WORDS * lane)
                    address += WORD_BYTES * row.length
    restore_denormals(mode)


@entry("machine.read_ticks", 0, returns="int")
def _read_ticks():
    return tick_count()


@entry("machine.ticks_of_readings", 1, returns="int")
def _ticks(count):
    first = last = tick_count()
    for _ in range(count):
        last = tick_count()
    return last - first


RUN: Entry = _run
"""The entry that every program needs."""


def runner() -> Callable[[int, int, int], None]:
    """Return the compiled form of ``run``, for callers that avoid the lookup at each call."""
    return RUN.call


def run(table_address: int, rows: int, bases_address: int) -> None:
    """Run ``rows`` rows of the linked table; bases: int64 addresses of the regions."""
    runner()(table_address, rows, bases_address)


def run_profiled(table_address: int, rows: int, bases_address: int, ticks_address: int) -> None:
    """Do ``run``, and add the ticks that each row took to ``ticks[row]``, int64."""
    _run_profiled.call(table_address, rows, bases_address, ticks_address)


def run_timed(table_address: int, rows: int, bases_address: int) -> int:
    """Do ``run``; return the ticks that it took."""
    return _run_timed.call(table_address, rows, bases_address)


def lanes_runner() -> Callable[[int, int, int, int], None]:
    """Return the function that runs a table for several lanes: (table, segments, number of segments, lanes' bases).

    See ``Segment``.
    """
    return _run_lanes.call


@functools.cache
def ticks_per_second() -> float:
    """Return the rate of the counter of ``run_profiled``, in Hz; measured once, in 20 ms."""
    read = _read_ticks.call
    start_ns, start = time.perf_counter_ns(), read()
    time.sleep(0.02)
    return (read() - start) * 1e9 / (time.perf_counter_ns() - start_ns)


@functools.cache
def seconds_per_reading() -> float:
    """Return the seconds to read the counter, which ``run_profiled`` adds to each row; measured once."""
    read = _ticks.call
    return min(read(CALIBRATION_READINGS) for _ in range(20)) / CALIBRATION_READINGS / ticks_per_second()


def run_python(table: RowTable, regions: Sequence[NDArray[np.uint8]]) -> None:
    """Run an unlinked table as plain Python. Raises IndexError: a kernel leaves a region."""
    for start in row_starts(table):
        row = table[start : start + int(table[start + 1])]
        kernel_of(int(row[0])).python(row, regions)
