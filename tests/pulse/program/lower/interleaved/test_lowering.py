"""The conversion of instructions for sixteen streams."""

import numpy as np
import pytest

from pulse.program.kernels.norm import SoftmaxRow
from pulse.program.kernels.norm_interleaved import InterleavedSoftmaxRow
from pulse.program.lower.interleaved.lowering import InterleavedLowering, NotInterleavedError
from pulse.program.table.memory import Buffer, Region, TensorView

LANES = 16
OFFSETS = np.array([0, 4])


def tensor(region: Region, size: int, dtype: type[np.generic]) -> TensorView:
    return TensorView(Buffer(region, size * np.dtype(dtype).itemsize, 0), 0, (size,), (1,), np.dtype(dtype))


def softmax(rows_y: TensorView) -> SoftmaxRow:
    """A softmax of two rows of four elements."""
    x, y = (tensor(Region.ARENA, 8, np.float32) for _ in "xy")
    rows_x = tensor(Region.WEIGHTS, 2, np.int64)
    return SoftmaxRow(x=x, y=y, M=2, rows_x=rows_x, rows_y=rows_y, R=4, log=False)


@pytest.fixture
def converter() -> InterleavedLowering:
    return InterleavedLowering(OFFSETS.view(np.uint8), tensor(Region.STATE, 1, np.int64))


def test_a_row_like_another_has_its_fields_for_all_streams(converter: InterleavedLowering) -> None:
    row = softmax(rows_y=tensor(Region.WEIGHTS, 2, np.int64))
    converted = dict(converter.row_like(row, InterleavedSoftmaxRow, ("rows_x", "rows_y")).fields_by_name())
    assert {name: converted[name] for name in ("M", "R", "log")} == {"M": 2, "R": 4, "log": False}
    assert {converted[name].size for name in "xy"} == {8 * LANES}
    assert {converted[name].buffer.size for name in "xy"} == {8 * 4 * LANES}
    assert {converted[name].shape for name in ("rows_x", "rows_y")} == {OFFSETS.shape}


def test_a_shared_operand_has_to_be_constant(converter: InterleavedLowering) -> None:
    row = softmax(rows_y=tensor(Region.ARENA, 2, np.int64))
    with pytest.raises(NotInterleavedError, match="a table in memory"):
        converter.row_like(row, InterleavedSoftmaxRow, ("rows_x", "rows_y"))
