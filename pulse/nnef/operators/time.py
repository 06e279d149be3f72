"""The operators of tract's pulsed models, over a whole stream: delays, borders, sums that begin later.

The end is not cut: a wire that is late by some frames is longer by as many.
"""

import numpy as np

from pulse.nnef.operators.cumulative import add_cum_sum
from pulse.nnef.operators.pad import BORDERS
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads
from pulse.support.wording import count_of


@reads("tract_pulse_delay", parameters="input axis delay overlap")
def read_delay(node: NodeReader) -> NnefWire:
    """The frames before the stream are zeros, which do not affect any frame of it."""
    x = node.wire("input")
    frames = node.integer("delay") + node.integer("overlap")
    return node.pad_axis(x, node.axis("axis", x.rank), frames, 0)


@reads(
    "tract_pulse_pulse_pad",
    parameters="input axis before after begin_input end_input border='constant' value=0.0 overlap=0",
)
def read_border(node: NodeReader) -> NnefWire:
    """Read the frames before ``begin_input`` and from ``end_input`` on, as far as other nodes read them."""
    x, border = node.wire("input"), node.text("border")
    modes = {name: mode for mode, name in BORDERS.items()}
    if border not in modes:
        raise node.error(f"the border must be one of {', '.join(modes)}")
    axis, begin, before = node.axis("axis", x.rank), node.integer("begin_input"), node.integer("before")
    (end,), (after,) = node.bounds("end_input"), node.bounds("after")
    if not 0 <= before <= begin or (isinstance(after, int) and after < 0):
        raise node.error(
            f"the border cannot have {count_of(before, 'frame')} before frame {begin} and {count_of(after, 'frame')} "
            "after the end"
        )
    inner = node.slice_axis(x, axis, begin, end, "stream")
    if modes[border] != "constant":
        inner = node.pad_axis(inner, axis, before, after, "border", mode=modes[border])
        return node.pad_axis(inner, axis, begin - before, 0)
    value = np.array(node.number("value")).astype(x.dtype)
    return node.pad_axis(inner, axis, begin, after, value=value)


@reads("tract_pulse_cumsum", parameters="input axis exclusive=False skip=0")
def read_cum_sum_stream(node: NodeReader) -> NnefWire:
    """Read a running sum that begins at frame ``skip``."""
    x, skip = node.wire("input"), node.integer("skip")
    axis = node.axis("axis", x.rank)
    inner = node.slice_axis(x, axis, skip, None, "stream") if skip else x
    total = add_cum_sum(node, inner, axis, node.boolean("exclusive"), False, "sum" if skip else "")
    return node.pad_axis(total, axis, skip, 0) if skip else total
