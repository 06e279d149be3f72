"""Steps of random models: convolutions, pools and borders."""

import numpy as np

from pulse.dim import ONE, ZERO, TDim
from pulse.graph import OutletId
from pulse.ops.conv import Conv, ConvTranspose, Pads, no_pads
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.pool import Pool
from tests.invariants.builder import MAX_CHANNELS, Builder

PADDINGS = ("constant", "edge", "reflect", "symmetric")


def scale_channels(builder: Builder, x: OutletId) -> OutletId:
    """A constant for each channel, or for all of them, added or multiplied."""
    channels = builder.channels(x)
    value = builder.constant(builder.numbers(builder.one_of(((), (1,), (channels, 1), (1, channels, 1)))))
    kind = builder.one_of(("add", "sub", "mul", "div"))
    if kind == "div":
        size = np.abs(builder.graph.fact(value).value)
        value = builder.constant(size + np.float32(0.5) if builder.chance() else np.ones_like(size))
    pair = (value, x) if kind != "div" and builder.chance() else (x, value)
    return builder.add(Elementwise(kind), *pair)


def _pads(builder: Builder, max_pad: int) -> Pads:
    return (
        ((TDim.of(builder.small(0, max_pad)), TDim.of(builder.small(0, max_pad))),)
        if builder.chance()
        else no_pads(1)
    )


def conv(builder: Builder) -> None:
    x = scale_channels(builder, builder.pick()) if builder.chance(0.4) else builder.pick()
    channels = builder.channels(x)
    group = builder.one_of([g for g in range(1, channels + 1) if channels % g == 0])
    out = group * builder.small(1, max(1, MAX_CHANNELS // group))
    kernel, dilation = builder.small(1, 3), builder.small(1, 2)
    stride = builder.small(1, 2) if builder.rate(x) >= 1 else 1
    w = builder.numbers((out, channels // group, kernel), (channels // group * kernel) ** -0.5)
    inputs = [x, builder.constant(w)]
    if builder.chance():
        inputs.append(builder.constant(builder.numbers((out,))))
    y = builder.add(Conv((stride,), (dilation,), _pads(builder, 2), group), *inputs)
    builder.keep(scale_channels(builder, y) if builder.chance(0.4) else y)


def conv_transpose(builder: Builder) -> None:
    x = builder.pick()
    channels = builder.channels(x)
    group = builder.one_of([g for g in range(1, channels + 1) if channels % g == 0])
    per_group = builder.small(1, max(1, MAX_CHANNELS // group))
    stride = builder.small(1, 2) if builder.rate(x) <= 1 else 1
    kernel = builder.small(stride, 4)
    pads = ((TDim.of(builder.small(0, kernel - 1)), ZERO),) if builder.chance() else no_pads(1)
    extra = builder.small(0, stride - 1)
    w = builder.numbers((channels, per_group, kernel), (channels // group * kernel / stride) ** -0.5)
    inputs = [x, builder.constant(w)]
    if builder.chance():
        inputs.append(builder.constant(builder.numbers((group * per_group,))))
    y = builder.add(ConvTranspose((stride,), (1,), pads, (extra,), group), *inputs)
    builder.keep(scale_channels(builder, y) if builder.chance(0.4) else y)


def pool(builder: Builder) -> None:
    x = builder.pick()
    kernel = builder.small(1, 3)
    stride = builder.small(1, 2) if builder.rate(x) >= 1 else 1
    kind = builder.one_of(("max", "average", "sum", "lp"))
    op = Pool(kind, (kernel,), (stride,), (1,), _pads(builder, kernel - 1), builder.chance())
    builder.keep(builder.add(op, x))


def pad(builder: Builder) -> None:
    mode = builder.one_of(PADDINGS)
    fill = builder.one_of((0.0, 0.5)) if mode == "constant" else 0.0
    builder.keep(builder.add(Pad((*no_pads(2), *_pads(builder, 2)), mode, fill), builder.pick()))


def padded_conv(builder: Builder) -> None:
    """A causal convolution as exporters write it."""
    x = builder.pick()
    padded = builder.add(
        Pad((*no_pads(2), (TDim.of(2), ZERO)), "constant", builder.one_of((0.0, 0.0, 0.5))), x
    )
    w = builder.constant(builder.numbers((builder.channels(x), 1, 3), 3**-0.5))
    builder.keep(builder.add(Conv((1,), (1,), no_pads(1), builder.channels(x)), padded, w))


def padded_max(builder: Builder) -> None:
    padded = builder.add(
        Pad((*no_pads(2), (ONE, ZERO)), "constant", builder.one_of((-np.inf, 0.0))), builder.pick()
    )
    builder.keep(builder.add(Pool("max", (2,), (1,), (1,), no_pads(1)), padded))


WINDOW_STEPS = (conv, conv_transpose, pool, pad, padded_conv, padded_max)
