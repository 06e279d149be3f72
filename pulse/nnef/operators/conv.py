"""Convolutions and their transposes."""

import numpy as np

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Expression, Name
from pulse.nnef.write.node import NodeWriter


def window(w: NodeWriter, spatial: int) -> dict[str, Expression]:
    """Padding, stride and dilation as NNEF's arguments."""
    pads = list(w.attribute("pads", [0] * 2 * spatial))
    if w.attribute("auto_pad", "NOTSET") != "NOTSET":
        raise w.error("have padding in numbers only", "give the node pads instead of auto_pad")
    return {
        "padding": [(int(pads[at]), int(pads[spatial + at])) for at in range(spatial)],
        "stride": [int(each) for each in w.attribute("strides", [1] * spatial)],
        "dilation": [int(each) for each in w.attribute("dilations", [1] * spatial)],
    }


def _bias(w: NodeWriter) -> list[Expression]:
    """NNEF's bias is [1, C]."""
    if not w.has(2):
        return []
    value = w.known(2)
    return [w.add_axes(w.x(2), [0], "bias") if value is None else w.tensor(value[None], "bias")]


@writes("Conv")
def write_conv(w: NodeWriter) -> Name:
    groups = int(w.attribute("group", 1))
    spatial = len(w.sizes()) - 2
    return w.emit("conv", w.x(), w.x(1), *_bias(w), **window(w, spatial), groups=groups, border="constant")


@writes("ConvTranspose")
def write_transpose(w: NodeWriter) -> Name:
    """tract stores the filter with the output's channels first, unlike NNEF."""
    groups, spatial = int(w.attribute("group", 1)), len(w.sizes()) - 2
    filter = w.known(1)
    if filter is None:
        raise w.error("take filters as constants only", "give the model a constant filter")
    taken, given, *taps = filter.shape
    turned = filter.reshape(groups, taken // groups, given, *taps).swapaxes(1, 2)
    stored = w.tensor(np.ascontiguousarray(turned).reshape(groups * given, taken // groups, *taps), "filter")
    return w.emit(
        "deconv",
        w.x(),
        stored,
        *_bias(w),
        **window(w, spatial),
        output_shape=[int(size) for size in w.made()[2:]],
        groups=groups,
        border="constant",
    )
