"""Features with their neighbours in time: stacked, spliced, and their slopes."""

import numpy as np

from pulse.facts import Array
from pulse.front.builder import FunctionBuilder
from pulse.front.default_shapes import FEATURES
from pulse.front.parameter_checks import require_choice, require_count, require_flag
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.conv import Conv, no_pads
from pulse.ops.op import PadMode

ENDS: dict[str, PadMode] = {"edge": "edge", "zeros": "constant"}


def stack(m: int = 7, n: int = 6, *, ends: str = "edge", shape: str = FEATURES) -> TypedModel:
    """Join ``m`` frames to one, every ``n`` frames: a low frame rate, as FunASR's ``apply_lfr``.

    Input    x [B, frames, bins]
    Output   features [B, ceil(frames / n), m*bins]; (frames - m) // n + 1 frames with ``ends="none"``
    Delay    a frame is ready with the last frame that it contains: (m - 1) - (m - 1) // 2 frames after its own;
             the last ones are ready at the end

    ends     what pads the ends, (m - 1) // 2 frames at the start: the nearest frame (``edge``), ``zeros``, or
             nothing (``none``)
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "stack"
    require_count(function, "m", m)
    require_count(function, "n", n)
    require_choice(function, "ends", ends, (*ENDS, "none"))
    builder = FunctionBuilder(function, {"x": shape})
    x = builder.features(FEATURES)
    if ends != "none":
        before = (m - 1) // 2
        x = builder.pad(x, 1, before, m - 1 - before, ENDS[ends])
    return builder.model(features=builder.join_axes(builder.frame(x, 1, m, n)))


def splice(left: int = 4, right: int = 4, *, ends: str = "edge", shape: str = FEATURES) -> TypedModel:
    """Join each frame with its neighbours, as Kaldi's ``splice-feats``.

    Input    x [B, frames, bins]
    Output   features [B, frames, (left + 1 + right)*bins]
    Delay    ``right`` frames

    ends     what pads the ends: the nearest frame (``edge``) or ``zeros``
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "splice"
    require_count(function, "left", left, 0)
    require_count(function, "right", right, 0)
    mode = ENDS[require_choice(function, "ends", ends, ENDS)]
    builder = FunctionBuilder(function, {"x": shape})
    x = builder.pad(builder.features(FEATURES), 1, left, right, mode)
    return builder.model(features=builder.join_axes(builder.frame(x, 1, left + 1 + right, 1)))


def deltas(
    order: int = 2, window: int = 2, *, nested: bool = False, keep: bool = True, shape: str = FEATURES
) -> TypedModel:
    """Compute the slopes of features over time, as Kaldi's ``add-deltas`` and ``torchaudio.functional.compute_deltas``.

    delta[t] = sum_j j * x[t + j] / sum_j j², j from -window to window; beyond the ends the nearest frame

    Input    x [B, frames, bins]
    Output   features [B, frames, (1 + order)*bins]: x, its slope, the slope of that …; without x if not ``keep``
    Delay    order*window frames

    nested   the nearest frames of the slope beyond its ends, as torchaudio applied twice; else those of x, as Kaldi
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "deltas"
    require_count(function, "order", order, 1, 8)
    require_count(function, "window", window, 1, 1 << 10)
    require_flag(function, "nested", nested)
    require_flag(function, "keep", keep)
    builder = FunctionBuilder(function, {"x": shape})
    x = builder.features(FEATURES)
    steps = np.arange(-window, window + 1)
    slope = steps / (steps**2).sum()
    orders: list[OutletId] = [x] if keep else []
    taps: Array = np.ones(1)
    before = x
    for _ in range(order):
        taps = slope if nested else np.convolve(taps, slope)
        before = _filter(builder, before if nested else x, taps)
        orders.append(before)
    return builder.model(features=orders[0] if len(orders) == 1 else builder.concat(*orders))


def _filter(builder: FunctionBuilder, x: OutletId, taps: Array) -> OutletId:
    """Filter each bin with the same odd number of taps around each frame."""
    bins, reach = int(builder.shape(x)[2]), len(taps) // 2
    extended = builder.pad(builder.transpose(x, (0, 2, 1)), 2, reach, reach, "edge")
    table = builder.add_constant("taps", np.broadcast_to(taps, (bins, 1, len(taps))))
    y = builder.add("slope", Conv((1,), (1,), no_pads(1), bins), extended, table)
    return builder.transpose(y, (0, 2, 1))
