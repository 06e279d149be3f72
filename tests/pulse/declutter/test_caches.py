"""A table of positions that a call fills and reads: what was written is read without the table."""

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.scatter import ScatterND
from pulse.ops.shape import AddAxis
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops

ROWS = 40


def write_frames(small: SmallModel, first: int = 0, step: int = 1, stored: bool = False) -> OutletId:
    """A table of zeros; the frames of x [T, 4] stand in it from ``first`` on."""
    frames = small.dim("T")
    if stored:
        every = small.constant(np.arange(ROWS) * step)
        index = small.add("i", Slice(0, TDim.of(first), frames + first), every)
    else:
        index = small.add("i", Range(first, step, frames, np.dtype(np.int64)))
    table = small.constant(np.zeros((ROWS, 4), np.float32))
    return small.add("table", ScatterND(), table, small.add("column", AddAxis(1), index), small.x)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("first", "start", "end"), [(0, 0, "T"), (3, 3, "T+3"), (3, 4, "T+3"), (0, 0, "T-2")]
)
def test_written_entries_are_read(stored: bool, first: int, start: int, end: str) -> None:
    small = SmallModel("T,4,f32")
    small.scope.assume("T >= 3")
    small.scope.assume("T <= 37")
    y = small.add("y", Slice(0, TDim.of(start), small.dim(end)), write_frames(small, first, stored=stored))
    result, fired = declutter_and_compare(small.model(y))
    assert fired["read_what_was_written"] == 1
    assert "scatter_nd" not in " ".join(ops(result)).lower()
    assert set(ops(result)) <= {"Slice"}


@pytest.mark.parametrize(
    ("first", "step", "start", "end"),
    [(0, 1, 0, "T+1"), (1, 1, 0, "T"), (0, 2, 0, "T"), (1, 1, 1, "T+2")],
)
def test_other_rows_of_the_table_are_read_from_it(first: int, step: int, start: int, end: str) -> None:
    """The rows are one frame too many, one too early, or every second row."""
    small = SmallModel("T,4,f32")
    y = small.add("y", Slice(0, TDim.of(start), small.dim(end)), write_frames(small, first, step))
    result, fired = declutter_and_compare(small.model(y))
    assert not fired["read_what_was_written"]
    assert len(ops(result)) > 1
