"""Steps that stream only after simplification: masks of padding, tables that are filled and read at once."""

from collections.abc import Callable

import numpy as np

from pulse.dim import ONE, ZERO, TDim, dim_max, dim_min
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from pulse.ops.matmul import MatMul
from pulse.ops.reduce import Reduce
from pulse.ops.scatter import ScatterND
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from tests.invariants.builder import Builder


def hidden_padding(builder: Builder) -> None:
    """Hide no frame, or the last one."""
    x = builder.pick()
    end = builder.length(x) - builder.small(0, 1)
    place = builder.add(Range(0, 1, builder.length(x), np.dtype(np.int64)))
    visible = builder.add(Elementwise("less"), place, builder.constant(np.array([end], object)))
    visible = builder.add(AddAxis(0), builder.add(AddAxis(0), visible))
    builder.keep(builder.add(Elementwise("where"), visible, x, builder.constant(np.zeros(1, np.float32))))


def filled_table(builder: Builder) -> None:
    """The read rows were written, or begin one row before those."""
    x = builder.pick()
    frames, first, early = builder.length(x), builder.small(1, 3), builder.small(0, 1)
    rows = builder.add(Transpose((1, 0)), builder.add(RemoveAxis(0), x))
    table = builder.constant(builder.numbers((1, builder.channels(x))))
    table = builder.add(Expand((frames + 4, TDim.of(builder.channels(x)))), table)
    place = builder.add(AddAxis(1), builder.add(Range(first, 1, frames, np.dtype(np.int64))))
    table = builder.add(ScatterND(), table, place, rows)
    begin = ZERO + first - early
    read = builder.add(Slice(0, begin, begin + frames), table)
    builder.keep(builder.add(AddAxis(0), builder.add(Transpose((1, 0)), read)))


def whole_frames(builder: Builder) -> None:
    """Join ones until the length is a multiple of 3, and cut them off."""
    x = builder.pick()
    frames = builder.length(x)
    missing = (frames + 2) // 3 * 3 - frames
    one = builder.constant(np.ones(1, np.float32))
    ones = builder.add(Expand((ONE, TDim.of(builder.channels(x)), missing)), one)
    joined = builder.add(Elementwise("tanh"), builder.add(Concat(2), x, ones))
    builder.keep(builder.add(Slice(2, ZERO, frames), joined))


def repeated_end(builder: Builder) -> None:
    """Join the last frame once more, and cut the first one off."""
    x = builder.pick()
    frames = builder.length(x)
    last = builder.add(Slice(2, frames - 1, frames), x)
    builder.keep(builder.add(Slice(2, ONE, frames + 1), builder.add(Concat(2), x, last)))


def joined_channel(builder: Builder) -> None:
    """Add one channel to all: it is taken from the channels and from ones that are joined to them."""
    x = builder.pick()
    one = builder.constant(np.ones(1, np.float32))
    ones = builder.add(Expand((ONE, ONE, builder.length(x))), one)
    place = builder.constant(np.array(builder.small(0, builder.channels(x)), np.int64))
    channel = builder.add(Gather(1), builder.add(Concat(1), x, ones), place)
    builder.keep(builder.add(Elementwise("add"), x, builder.add(AddAxis(1), channel)))


def shifted_frames(builder: Builder) -> None:
    """A number for each of the first frames, and after them all frames but as many last ones."""
    x, count = builder.pick(), builder.small(1, 2)
    frames = builder.length(x)
    first = Expand((ONE, TDim.of(builder.channels(x)), dim_min(frames, count)))
    filled = builder.add(first, builder.constant(np.zeros(1, np.float32)))
    rest = builder.add(Slice(2, ZERO, dim_max(frames - count, 0)), x)
    builder.keep(builder.add(Concat(2), filled, rest))


def merged_rows(builder: Builder) -> None:
    """A product of each element, as a row of its own, whose rows are split into channels and frames again."""
    x = builder.pick()
    channels, frames, width = TDim.of(builder.channels(x)), builder.length(x), builder.small(1, 3)
    rows = builder.add(Reshape((channels * frames, ONE)), x)
    rows = builder.add(MatMul(), rows, builder.constant(builder.numbers((1, width))))
    split = builder.add(Reshape((ONE, channels, frames, TDim.of(width))), rows)
    builder.keep(builder.add(Reduce("sum", (3,), False), split))


def float_codes(builder: Builder) -> None:
    """Add codes of u8, read back as floats, of values so small that all of them are the zero point."""
    x, zero = builder.pick(), float(builder.small(0, 3))
    small = builder.add(Elementwise("mul"), x, builder.constant(np.array(1e-3, np.float32)))
    y = builder.add(Elementwise("round"), small)
    for kind, number in (("add", zero), ("max", 0.0), ("min", 255.0)):
        y = builder.add(Elementwise(kind), y, builder.constant(np.array(number, np.float32)))
    y = builder.add(Cast(np.dtype(np.uint8)), y)
    if builder.chance():
        y = builder.add(AddAxis(0), y)
        y = builder.add(RemoveAxis(0), builder.add(Cast(np.dtype(np.float32)), y))
    else:
        y = builder.add(Cast(np.dtype(np.float32)), y)
    y = builder.add(Elementwise("sub"), y, builder.constant(np.array(zero, np.float32)))
    builder.keep(builder.add(Elementwise("add"), x, y))


POSITION_STEPS: dict[str, Callable[[Builder], None]] = {
    step.__name__: step
    for step in (
        hidden_padding,
        filled_table,
        whole_frames,
        repeated_end,
        joined_channel,
        shifted_frames,
        merged_rows,
        float_codes,
    )
}
"""More of what ``random_model`` may add, if it is asked to."""
