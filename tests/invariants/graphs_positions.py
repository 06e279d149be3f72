"""Steps that stream only after simplification: masks of padding, tables that are filled and read at once."""

from collections.abc import Callable

import numpy as np

from pulse.dim import ZERO, TDim
from pulse.ops.elementwise import Elementwise
from pulse.ops.scatter import ScatterND
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Transpose
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from tests.invariants.builder import Builder


def hidden_padding(b: Builder) -> None:
    """No frame is hidden, or the last one."""
    x = b.pick()
    end = b.length(x) - b.small(0, 1)
    place = b.add(Range(0, 1, b.length(x), np.dtype(np.int64)))
    seen = b.add(Elementwise("less"), place, b.constant(np.array([end], object)))
    seen = b.add(AddAxis(0), b.add(AddAxis(0), seen))
    b.keep(b.add(Elementwise("where"), seen, x, b.constant(np.zeros(1, np.float32))))


def filled_table(b: Builder) -> None:
    """The read rows were written, or begin one row before those."""
    x = b.pick()
    frames, first, early = b.length(x), b.small(1, 3), b.small(0, 1)
    rows = b.add(Transpose((1, 0)), b.add(RemoveAxis(0), x))
    table = b.constant(b.numbers((1, b.channels(x))))
    table = b.add(Expand((frames + 4, TDim.of(b.channels(x)))), table)
    place = b.add(AddAxis(1), b.add(Range(first, 1, frames, np.dtype(np.int64))))
    table = b.add(ScatterND(), table, place, rows)
    begin = ZERO + first - early
    read = b.add(Slice(0, begin, begin + frames), table)
    b.keep(b.add(AddAxis(0), b.add(Transpose((1, 0)), read)))


POSITION_STEPS: dict[str, Callable[[Builder], None]] = {
    step.__name__: step for step in (hidden_padding, filled_table)
}
"""More of what ``random_model`` may add, if it is asked to."""
