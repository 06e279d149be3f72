"""Kernels of ``copy`` against numpy, as plain Python and compiled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from pulse.jit.rows.instruction import number_fields
from pulse.program.kernels.copy import CopyRow, FillRow, MoveRow, PairedCopyRow
from tests.failed_cases import in_one_test
from tests.pulse.program.kernels.rows import ArrayPart, run_both, run_row

SIZES = (1, 2, 4, 8)


def numbers(size: int, count: int, seed: int = 0) -> np.ndarray:
    """Random bits in elements of a size."""
    bytes_ = np.random.default_rng(seed).integers(0, 256, count * size, dtype=np.uint8)
    return bytes_.view(f"i{size}")


def strided_view(array: np.ndarray, start: int, sizes: list[int], strides: list[int]) -> np.ndarray:
    return as_strided(array[start:], sizes, [step * array.itemsize for step in strides])


def assert_copy_agrees_with_numpy(size: int, sizes: list[int], a: list[int], b: list[int]) -> None:
    """Copy between arrays just large enough for the strides, which may be negative in the source."""
    missing = 6 - len(sizes)
    first = -sum(min(0, step * (n - 1)) for step, n in zip(a, sizes) if n)
    last = sum(max(0, step * (n - 1)) for step, n in zip(a, sizes) if n)
    src = numbers(size, first + last + 1)
    dst = numbers(size, 1 + sum(step * (n - 1) for step, n in zip(b, sizes) if n), 1)
    want = dst.copy()
    if all(sizes):
        strided_view(want, 0, sizes, b)[...] = strided_view(src, first, sizes, a)
    row = CopyRow(
        src=ArrayPart(src, first),
        dst=dst,
        size=size,
        **number_fields("n", [1] * missing + sizes),
        **number_fields("a", [0] * missing + a),
        **number_fields("b", [0] * missing + b),
    )
    for arrays in run_both(row):
        np.testing.assert_array_equal(arrays["dst"], want)
        np.testing.assert_array_equal(arrays["src"], src)


@pytest.mark.parametrize("size", SIZES)
@in_one_test("count", [0, 1, 3, 15, 16, 17, 63, 64, 65, 200, 1000])
def test_copies_of_one_run_agree_with_numpy(size: int, count: int) -> None:
    assert_copy_agrees_with_numpy(size, [count], [1], [1])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("sizes", "a", "b"),
    [
        ([5, 7], [9, 1], [8, 1]),
        ([5, 40], [40, 1], [43, 1]),
        ([5, 7], [1, 5], [7, 1]),
        ([37, 70], [1, 41], [73, 1]),
        ([16, 16], [1, 16], [16, 1]),
        ([2, 8], [8, 1], [1, 2]),
        ([2, 37], [40, 1], [1, 2]),
        ([48, 2], [1, 50], [2, 1]),
        ([3, 17], [40, 2], [18, 1]),
        ([2, 40], [90, 2], [41, 1]),
        ([1, 33], [0, 2], [0, 1]),
        ([5, 7], [3, 0], [7, 1]),
        ([5, 70], [3, 0], [80, 1]),
        ([5, 7], [0, 1], [8, 1]),
        ([5, 7], [-9, 1], [8, 1]),
        ([5, 20], [30, -1], [21, 1]),
        ([5, 7], [20, 2], [35, 5]),
        ([4, 0], [1, 1], [1, 1]),
        ([0, 4], [1, 1], [1, 1]),
        ([3, 4, 5], [20, 5, 1], [100, 20, 3]),
        ([3, 4, 5], [1, 3, 12], [20, 5, 1]),
        ([2, 3, 2, 3, 2, 3], [1, 2, 6, 12, 36, 72], [108, 36, 18, 6, 3, 1]),
        ([2, 1, 2, 0, 2, 3], [1, 2, 6, 12, 36, 72], [108, 36, 18, 6, 3, 1]),
    ],
)
def test_copies_with_strides_agree_with_numpy(
    size: int, sizes: list[int], a: list[int], b: list[int]
) -> None:
    assert_copy_agrees_with_numpy(size, sizes, a, b)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_copies_of_random_layouts_agree_with_numpy(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 6))
    sizes = data.draw(st.lists(st.integers(0, 6 if rank < 4 else 3), min_size=rank, max_size=rank))
    a = data.draw(st.lists(st.integers(-7, 9), min_size=rank, max_size=rank))
    order, step, b = data.draw(st.permutations(range(rank))), 1, [0] * rank
    for axis in order:
        b[axis] = step
        step = step * max(1, sizes[axis]) + data.draw(st.integers(0, 2))
    assert_copy_agrees_with_numpy(data.draw(st.sampled_from(SIZES)), sizes, a, b)


def test_a_copy_beyond_its_region_is_an_index_error() -> None:
    src, dst = numbers(4, 8), numbers(4, 8)
    sizes, steps = [1, 1, 1, 1, 1, 1000], [0, 0, 0, 0, 0, 1]
    loops = number_fields("n", sizes) | number_fields("a", steps) | number_fields("b", steps)
    with pytest.raises(IndexError):
        run_row(CopyRow(src=src, dst=dst, size=4, **loops), python=True)


@pytest.mark.parametrize("size", SIZES)
@in_one_test("count", [0, 1, 3, 16, 17, 100])
@in_one_test("value", [0, 1, -1, 0x3F800000, 0x123456789ABCDEF0])
def test_fill_writes_every_element(size: int, count: int, value: int) -> None:
    dst = numbers(size, count)
    want = np.full(count, value & ((1 << 8 * size) - 1), f"u{size}").view(dst.dtype)
    for arrays in run_both(FillRow(dst=dst, size=size, count=count, bits=value)):
        np.testing.assert_array_equal(arrays["dst"], want)


@pytest.mark.parametrize(("start", "count"), [(8, 0), (8, 4), (8, 60), (100, 900), (1, 999)])
def test_a_move_may_overlap_itself(start: int, count: int) -> None:
    memory = numbers(1, 1000)
    want = memory.copy()
    want[:count] = memory[start : start + count]
    for arrays in run_both(MoveRow(dst=memory, src=ArrayPart(memory, start), bytes=count)):
        np.testing.assert_array_equal(arrays["dst"], want)


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 20, 37])
def test_pairs_interleave_two_tensors(rows: int, columns: int) -> None:
    steps = [2 * columns + 3, columns + 2, columns]
    arrays = [numbers(4, rows * step + 1, seed).view(np.float32) for seed, step in enumerate(steps)]
    want, left, right = (
        strided_view(array, 0, [rows, width], [step, 1])
        for array, step, width in zip([arrays[0].copy(), *arrays[1:]], steps, [2 * columns, columns, columns])
    )
    want[:, ::2], want[:, 1::2] = left, right
    row = PairedCopyRow(
        dst=arrays[0],
        src0=arrays[1],
        src1=arrays[2],
        rows=rows,
        columns=columns,
        step=steps[0],
        step0=steps[1],
        step1=steps[2],
    )
    for results in run_both(row):
        after = strided_view(results["dst"], 0, [rows, 2 * columns], [steps[0], 1])
        np.testing.assert_array_equal(after.view(np.int32), want.view(np.int32))
        outside = strided_view(results["dst"], 2 * columns, [max(rows - 1, 0), 3], [steps[0], 1])
        kept = strided_view(arrays[0], 2 * columns, [max(rows - 1, 0), 3], [steps[0], 1])
        np.testing.assert_array_equal(outside.view(np.int32), kept.view(np.int32))
