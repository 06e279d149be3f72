"""Prefaulted memory: its first access does not wait, and its values stay."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from streaming.realtime import prefault
from tests.noise import normal_noise
from tests.streaming.platform_marks import linux


def faults() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


@linux
def test_no_first_access_waits_after_prefault() -> None:
    pages = 2000
    plain, touched = (mmap.mmap(-1, pages * mmap.PAGESIZE) for _ in range(2))
    for block in (plain, touched):
        block.madvise(mmap.MADV_NOHUGEPAGE)
    arrays = [np.frombuffer(block, np.uint8) for block in (plain, touched)]
    prefault(arrays[1])
    counts = []
    for array in arrays:
        before = faults()
        array[:: mmap.PAGESIZE] = 1
        counts.append(faults() - before)
    assert counts[0] >= pages
    assert counts[1] < pages // 20


@pytest.mark.parametrize(
    "form", ["plain", "strided", "backwards", "read only", "empty", "scalar", "transposed"]
)
def test_prefault_keeps_values(form: str) -> None:
    values = normal_noise(300, 41)
    array = {
        "plain": values,
        "strided": values[3::7, 1::2],
        "backwards": values[::-1, ::-1],
        "read only": np.broadcast_to(values[0], (5, 41)),
        "empty": values[:0],
        "scalar": values[0, :1].reshape(()),
        "transposed": values.T,
    }[form]
    before = values.copy()
    prefault(array, values)
    np.testing.assert_array_equal(values, before)


def test_prefault_reads_read_only_pages(tmp_path: Path) -> None:
    """A file that is mapped to be read."""
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * 64)
    mapped = np.memmap(path, np.uint8, "r")
    prefault(mapped)
    assert mapped[-1] == 255
