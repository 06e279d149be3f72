"""Mean and variance normalisation of features: with fixed statistics or a sliding window."""

from collections.abc import Sequence
from os import PathLike

import numpy as np

from pulse.dim import TDim
from pulse.errors import InputError
from pulse.facts import F32, Array
from pulse.front.builder import FunctionBuilder
from pulse.front.default_shapes import FEATURES
from pulse.front.feature_statistics import STATISTICS_FORMATS, read_statistics
from pulse.front.parameter_checks import require_choice, require_count, require_flag
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.conv import no_pads
from pulse.ops.pool import Pool
from pulse.ops.reduce import Reduce
from pulse.ops.shape import Expand
from pulse.ops.time_position import Range
from pulse.support.wording import count_of

MIN_VARIANCE = 1e-10
"""A smaller variance counts as this one, so that constant features stay finite."""


def cmvn(
    path: "str | PathLike[str] | None" = None,
    file_format: str = "auto",
    *,
    mean: Sequence[float] | float | None = None,
    std: Sequence[float] | float | None = None,
    norm_vars: bool = True,
    axis: int = -1,
    shape: str = FEATURES,
) -> TypedModel:
    """Compute (x - mean) / std with fixed statistics.

    Input    x [...]
    Output   features [...]
    Delay    none

    path     a file of statistics: Kaldi's (``compute-cmvn-stats``: sums, binary or text), or FunASR's ``am.mvn``
    file_format  format of the file: ``kaldi`` or ``funasr``; detected by default
    mean, std  the numbers themselves, one for each bin or one for all, instead of a file; 0 and 1 by default
    norm_vars  divide by the deviation
    axis     axis of the bins
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "cmvn"
    require_choice(function, "file_format", file_format, STATISTICS_FORMATS)
    require_flag(function, "norm_vars", norm_vars)
    builder = FunctionBuilder(function, {"x": shape})
    x = builder["x"]
    bins_axis = builder.axis(x, axis)
    bins = builder.require_fixed(x, bins_axis, "the bins")
    if path is not None:
        if mean is not None or std is not None:
            raise InputError(f"{function}: give a path, or mean and std, not both")
        shift, scale = read_statistics(function, path, file_format)
    else:
        if mean is None and std is None:
            raise InputError(f"{function}: give the path of a file of statistics, or mean and std")
        shift = -_read_given(function, "mean", 0.0 if mean is None else mean, bins)
        deviation = _read_given(function, "std", 1.0 if std is None else std, bins)
        if not (deviation > 0).all():
            raise InputError(f"{function}: std must be above 0 for every bin")
        scale = 1 / deviation
    if len(shift) != bins:
        raise InputError(
            f"{function}: statistics of {count_of(len(shift), 'bin')} for features of {bins}, {builder.text(x)!r}"
        )
    along = [bins if other == bins_axis else 1 for other in range(builder.rank(x))]
    y = builder.apply("add", x, builder.add_constant("shift", shift.reshape(along)), name="centred")
    if norm_vars:
        y = builder.apply("mul", y, builder.add_constant("scale", scale.reshape(along)), name="normalised")
    return builder.model(features=y)


def sliding_cmvn(
    window: int = 600,
    min_window: int = 100,
    *,
    center: bool = False,
    norm_vars: bool = False,
    shape: str = FEATURES,
) -> TypedModel:
    """Subtract a sliding mean from features, as in Kaldi's ``apply-cmvn-sliding``.

    Input    x [B, frames, bins]
    Output   features [B, frames, bins]
    Delay    min_window - 1 frames, with ``center`` window - 1: the first frame waits for these

    window   frames of the mean: those before a frame and itself, or around it with ``center``
    min_window  until that many frames have come, the mean is over the first ``min_window`` frames
    norm_vars  divide by the deviation over the same frames
    Raises   InputError: an option is out of range. A stream of fewer frames than min_window (with ``center``: than
             window) is refused at its end
    """
    function = "sliding_cmvn"
    require_count(function, "window", window, 2)
    require_flag(function, "center", center)
    require_flag(function, "norm_vars", norm_vars)
    require_count(function, "min_window", min_window, 1, window)
    builder = FunctionBuilder(function, {"x": shape})
    x = builder.features(FEATURES)
    mean, variance = (
        _centred_moments(builder, x, window) if center else _past_moments(builder, x, window, min_window)
    )
    y = builder.apply("sub", x, mean, name="centred")
    if norm_vars:
        y = builder.apply("div", y, builder.apply("sqrt", builder.apply("max", variance, MIN_VARIANCE)))
    return builder.model(features=y)


def _read_given(function: str, name: str, value: Sequence[float] | float, bins: int) -> Array:
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        numbers = np.full((1, 1), np.nan)
    if numbers.shape not in ((), (bins,)) or not np.isfinite(numbers).all():
        raise InputError(f"{function}: {name} must be one finite number, or {bins} of them, one for each bin")
    return np.broadcast_to(numbers, (bins,)).astype(np.float64)


def _sums(builder: FunctionBuilder, x: OutletId, frames: int) -> OutletId:
    """Return the sum of each group of this many neighbouring frames."""
    frames_last = builder.transpose(x, (0, 2, 1))
    y = builder.add("sums", Pool("sum", (frames,), (1,), (1,), no_pads(1)), frames_last)
    return builder.transpose(y, (0, 2, 1))


def _centred_moments(builder: FunctionBuilder, x: OutletId, window: int) -> tuple[OutletId, OutletId]:
    """Return mean and variance of the frames around each; near the ends of the first and the last window."""
    builder.require(builder.shape(x)[1], window, "frames of a window")
    before, after = window // 2, window - 1 - window // 2
    mean = builder.apply("mul", _sums(builder, x, window), 1 / window, name="mean")
    variance = builder.apply(
        "mul", _squares(builder, builder.frame(x, 1, window, 1), mean), 1 / window, name="variance"
    )
    return builder.pad(mean, 1, before, after, "edge"), builder.pad(variance, 1, before, after, "edge")


def _past_moments(
    builder: FunctionBuilder, x: OutletId, window: int, min_window: int
) -> tuple[OutletId, OutletId]:
    """Return the mean and the variance of each frame with up to ``window`` before it.

    At the beginning, of the first ``min_window`` frames.
    """
    frames = builder.shape(x)[1]
    builder.require(frames, min_window, "frames of min_window")
    with_zeros = builder.pad(x, 1, window, 0)
    counts = builder.add("counts", Range(1.0, 1.0, frames, F32))
    counts = builder.apply("min", builder.reshape(counts, 1, frames, 1), float(window + 1))
    mean = builder.apply("div", _sums(builder, with_zeros, window + 1), counts, name="mean")
    ones = builder.add(
        "ones", Expand((TDim.of(1), frames, TDim.of(1))), builder.add_constant("one", np.ones((1, 1, 1)))
    )
    present = builder.frame(builder.pad(ones, 1, window, 0), 1, window + 1, 1)
    squares = _squares(builder, builder.frame(with_zeros, 1, window + 1, 1), mean, present)
    variance = builder.apply("div", squares, counts, name="variance")
    return _hold_first_frames(builder, mean, min_window), _hold_first_frames(builder, variance, min_window)


def _squares(
    builder: FunctionBuilder, windows: OutletId, mean: OutletId, present: OutletId | None = None
) -> OutletId:
    """Return ``[B, frames, bins]``: the squared distances of [B, frames, window, bins] from their mean, summed.

    The mean of squares minus the squared mean would consist of rounding errors for loud features of small variance.
    """
    differences = builder.apply("sub", windows, builder.add_axis(mean, 2))
    if present is not None:
        differences = builder.apply("mul", differences, present)
    return builder.add("squares", Reduce("sum_square", (2,), False), differences)


def _hold_first_frames(builder: FunctionBuilder, x: OutletId, min_window: int) -> OutletId:
    """Return the first frames replaced by the one at which there are ``min_window``."""
    return builder.pad(builder.slice(x, 1, min_window - 1, builder.shape(x)[1]), 1, min_window - 1, 0, "edge")
