"""Kernels that know the time against the ``step`` methods of their ops, as plain Python and compiled."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.dim import SymbolScope, TDim
from pulse.facts import TypedFact
from pulse.ops.clock import Clock
from pulse.ops.time import LastFrames
from pulse.ops.time_ends import FillEnds
from pulse.ops.time_position import Positions, TableRows
from pulse.program.kernels.time import FillEndsRow, LastFramesRow, PositionsRow, TableLookupRow, TickRow
from pulse.support.bounds import UNBOUNDED
from tests.pulse.program.kernels.rows import run_both

SYMBOL = SymbolScope().symbol("S")
LENGTH = TDim.of(SYMBOL)
PADDING_MODES = ("constant", "edge", "reflect", "symmetric")
DTYPES = (np.uint8, np.float16, np.float32, np.int64, np.float64, np.int32, np.int8, np.bool_)
"""The types of frames."""


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 100, shape).astype(dtype)


def time_of(pulse: int, end: int | None) -> tuple[Clock, np.ndarray, np.ndarray]:
    """The clock of the oracle, and the two operands that say the same."""
    return (
        Clock(SYMBOL, pulse, end),
        np.array([pulse, 77], np.int64),
        np.array([UNBOUNDED if end is None else end], np.int64),
    )


def spaced_frames(frames: np.ndarray, step: int) -> np.ndarray:
    """The frames ``step`` elements apart, 55 between them."""
    out = np.full((len(frames), step), 55, frames.dtype)
    out[:, : frames.shape[1]] = frames
    return out


def bits_of(value: float, dtype: Any) -> int:
    return int(np.array([value]).astype(dtype).view(f"i{np.dtype(dtype).itemsize}")[0])


def assert_ends(
    op: FillEnds, pulse_frames: int, run: int, dtype: Any, clock: int, end: int | None, gap: int
) -> None:
    """Out of place, frames ``gap`` elements apart, whole and in parts; and in place where that is allowed."""
    x = numbers((op.overlap + pulse_frames, run), dtype, clock)
    oracle_clock, clock_words, end_words = time_of(clock, end)
    (want,) = op.step([x], [], oracle_clock)
    y = np.full((op.keep + pulse_frames, run), 9, dtype)
    empty = np.zeros((0, run), dtype)
    head, tail = (empty if table is None else table for table in (op.head, op.tail))
    inputs, outputs = spaced_frames(x, run + gap), spaced_frames(y, run + gap)
    row = FillEndsRow(
        x=inputs,
        y=outputs,
        clock=clock_words,
        end=end_words,
        P=pulse_frames,
        overlap=op.overlap,
        offset=op.offset,
        shift=op.shift,
        mode=PADDING_MODES.index(op.mode),
        size=x.itemsize,
        run=run,
        step_x=run + gap,
        step_y=run + gap,
        bits=bits_of(op.fill, dtype),
        head=head,
        head_frames=len(head),
        tail=tail,
        tail_frames=len(tail),
        keep=op.keep,
        in_place=False,
        first=0,
        frames=len(y),
    )
    expected = spaced_frames(want, run + gap)
    for results in run_both(row):
        np.testing.assert_array_equal(results["y"], expected)
        np.testing.assert_array_equal(results["x"], inputs)
    middle = len(y) * 2 // 3
    for first, last in ((0, middle), (middle, len(y))):
        for results in run_both(replace(row, first=first, frames=last - first)):
            np.testing.assert_array_equal(results["y"][first:last], expected[first:last])
            np.testing.assert_array_equal(results["y"][:first], outputs[:first])
            np.testing.assert_array_equal(results["y"][last:], outputs[last:])
    if op.mode == "constant" and op.overlap == 0 and op.offset == op.shift:
        for results in run_both(replace(row, y=inputs, in_place=True)):
            np.testing.assert_array_equal(results["y"], expected)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_random_ends_are_filled_as_by_the_op(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    dtype, run = data.draw(st.sampled_from(DTYPES)), draw(0, 5)
    tables = [None if draw(0, 1) else numbers((draw(1, 4), run), dtype, 5 + n) for n in range(2)]
    overlap, offset = data.draw(st.sampled_from([0, 0, 3])), draw(-4, 9)
    op = FillEnds(
        axis=0,
        overlap=overlap,
        offset=offset,
        shift=offset if draw(0, 1) else offset + draw(-5, 5),
        length=LENGTH,
        mode=data.draw(st.sampled_from(PADDING_MODES)),
        fill=data.draw(st.sampled_from([0.0, 3.0])),
        head=tables[0],
        tail=tables[1],
        keep=draw(0, overlap),
    )
    end = data.draw(st.none() | st.integers(0, 30))
    assert_ends(op, draw(0, 6), run, dtype, draw(0, 8), end, draw(0, 2))


@pytest.mark.parametrize("clock", [0, 1, 2, 5])
@pytest.mark.parametrize("end", [None, 0, 3, 70, 95])
def test_ends_of_long_frames_are_filled_as_by_the_op(clock: int, end: int | None) -> None:
    op = FillEnds(axis=0, overlap=0, offset=20, shift=20, length=LENGTH, fill=-1.5)
    assert_ends(op, 16, 80, np.float32, clock, end, 0)


POSITION_DTYPES = (np.float32, np.float64, np.int64, np.int32, np.uint8, np.int8, np.bool_)
"""The types of positions by their codes."""


@pytest.mark.parametrize(
    ("code", "start", "step"),
    [
        (code, *progression)
        for code, dtype in enumerate(POSITION_DTYPES)
        for progression in ([(60, 1), (65, 3), (70, 2)] if dtype is np.uint8 else [(0, 1), (5, 3), (100, -2)])
    ],
)
@pytest.mark.parametrize(
    ("frames", "offset", "clock"), [(5, 0, 0), (3, 7, 2), (0, 0, 3), (1, 2, 9), (40, -6, 1)]
)
def test_positions_are_those_of_the_op(
    code: int, frames: int, offset: int, clock: int, start: int, step: int
) -> None:
    dtype, scale = POSITION_DTYPES[code], 0.5 if code < 2 else 1
    op = Positions(start * scale, step * scale, np.dtype(dtype), offset, frames)
    oracle_clock, words, _ = time_of(clock, None)
    (want,) = op.step([], [], oracle_clock)
    y = np.zeros(frames, dtype)
    row = PositionsRow(
        y=y,
        clock=words,
        P=frames,
        offset=offset,
        dtype=code,
        real_start=start * float(scale),
        real_step=step * float(scale),
        start=start,
        step=step,
    )
    for arrays in run_both(row):
        np.testing.assert_array_equal(arrays["y"], want)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(DTYPES),
    *[st.integers(0, n) for n in (6, 9, 3)],
    *[st.integers(-n, n) for n in (9, 5, 3)],
    st.integers(0, 6),
)
def test_table_rows_are_those_of_the_op(
    dtype: Any, frames: int, rows: int, run: int, offset: int, start: int, step: int, clock: int
) -> None:
    table = numbers((rows, run), dtype, rows)
    oracle_clock, words, _ = time_of(clock, None)
    want = np.zeros((frames, run), dtype)
    if rows:
        (want,) = TableRows(0, start, step, offset, frames).step([table], [], oracle_clock)
    y = np.full((frames, run), 9, dtype)
    row = TableLookupRow(
        table=table,
        y=y,
        clock=words,
        P=frames,
        offset=offset,
        start=start,
        step=step,
        rows=rows,
        size=table.itemsize,
        run=run,
    )
    for arrays in run_both(row):
        np.testing.assert_array_equal(arrays["y"], want)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(DTYPES),
    *[st.integers(0, n) for n in (6, 4, 7, 2)],
    st.integers(-9, 9),
    st.none() | st.integers(0, 40),
)
def test_the_last_frames_are_those_of_the_op(
    dtype: Any, pulse: int, run: int, frames_kept: int, gap: int, offset: int, end: int | None
) -> None:
    op = LastFrames(
        0, frames_kept, offset, LENGTH, TypedFact(np.dtype(dtype), (TDim.of(pulse), TDim.of(run)))
    )
    state = op.initial_state()
    memories = [state[0], state[0]]
    for clock in range(6):
        x = numbers((pulse, run), dtype, clock)
        oracle_clock, clock_words, end_words = time_of(clock, end)
        (want,) = op.step([x], state, oracle_clock)
        for n in range(2):
            row = LastFramesRow(
                x=spaced_frames(x, run + gap),
                memory=memories[n],
                clock=clock_words,
                end=end_words,
                P=pulse,
                offset=offset,
                F=frames_kept,
                size=x.itemsize,
                run=run,
                step=run + gap,
            )
            memories[n] = run_both(row)[n]["memory"]
            np.testing.assert_array_equal(memories[n], want)


def test_tick_counts_one_pulse() -> None:
    for arrays in run_both(TickRow(clock=np.array([41, 7]))):
        np.testing.assert_array_equal(arrays["clock"], [42, 7])
