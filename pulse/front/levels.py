"""The level of audio: gain, filters of one coefficient, a limiter."""

import math

import numpy as np

from pulse.errors import InputError
from pulse.front.builder import FunctionBuilder
from pulse.front.default_shapes import SOUND
from pulse.front.parameter_checks import require_choice, require_count, require_number
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.conv import no_pads
from pulse.ops.pool import Pool
from pulse.ops.recurrent import Recurrent
from pulse.ops.recurrent_cells import Activation, Cell


def gain(factor: float | None = None, db: float | None = None, shape: str = SOUND) -> TypedModel:
    """Multiply audio, or anything else, by a factor.

    Input    x [...]
    Output   sound [...]

    factor   or ``db``, 20 log10 of it
    Raises   InputError: none of them, or both
    """
    function = "gain"
    if (factor is None) == (db is None):
        raise InputError(f"{function}: give either factor or db")
    times = (
        require_number(function, "factor", factor)
        if db is None
        else 10 ** (require_number(function, "db", db, -400, 400) / 20)
    )
    builder = FunctionBuilder(function, {"x": shape})
    return builder.model(sound=builder.apply("mul", builder["x"], times, name="sound"))


def preemphasis(coefficient: float = 0.97, first: str = "zero", shape: str = SOUND) -> TypedModel:
    """Compute ``y[t] = x[t] - coefficient * x[t-1]``, as ``torchaudio.functional.preemphasis``.

    Input    x [B, T]
    Output   sound [B, T]
    Delay    none

    first    what precedes the first sample: ``zero``, or that sample again (``repeat``)
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "preemphasis"
    require_number(function, "coefficient", coefficient)
    require_choice(function, "first", first, ("zero", "repeat"))
    builder = FunctionBuilder(function, {"x": shape})
    builder.require_rank(builder["x"], 2, SOUND)
    x = builder.pad(builder["x"], 1, 1, 0, "constant" if first == "zero" else "edge")
    return builder.model(sound=_difference(builder, x, coefficient))


def deemphasis(coefficient: float = 0.97, shape: str = SOUND) -> TypedModel:
    """Compute ``y[t] = x[t] + coefficient * y[t-1]``, from 0 on: the inverse of ``preemphasis``.

    Input    x [B, T]
    Output   sound [B, T]
    Delay    none

    coefficient  a number from 0 up to, not including, 1
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "deemphasis"
    builder = FunctionBuilder(function, {"x": shape})
    builder.require_rank(builder["x"], 2, SOUND)
    return builder.model(sound=_integrate_leakily(builder, builder["x"], coefficient))


def dc_block(coefficient: float = 0.995, shape: str = SOUND) -> TypedModel:
    """Remove DC: ``y[t] = x[t] - x[t-1] + coefficient * y[t-1]``, from 0 on.

    Input    x [B, T]
    Output   sound [B, T]
    Delay    none

    coefficient  a number from 0 up to, not including, 1; it falls off below (1 - coefficient) * sample rate / (2 pi) Hz
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "dc_block"
    builder = FunctionBuilder(function, {"x": shape})
    builder.require_rank(builder["x"], 2, SOUND)
    x = builder.pad(builder["x"], 1, 1, 0)
    return builder.model(sound=_integrate_leakily(builder, _difference(builder, x, 1.0), coefficient))


def limiter(
    threshold: float = 0.98,
    lookahead_ms: float = 5.0,
    *,
    hold_ms: float = 10.0,
    sample_rate: int = 16000,
    shape: str = SOUND,
) -> TypedModel:
    """Keep the magnitude of audio below a threshold, by a gain that changes without steps.

    The gain that each sample needs is min(1, threshold / |x|). The minimum of those from ``hold_ms`` before to
    ``lookahead_ms`` ahead, averaged over ``lookahead_ms``, is never above it.

    Input    x [B, T]
    Output   sound [B, T]
    Delay    lookahead_ms

    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "limiter"
    require_number(function, "threshold", threshold, 0, above=True)
    require_count(function, "sample_rate", sample_rate)
    ahead, hold = (
        round(require_number(function, name, value, 0, 1000) * sample_rate / 1000)
        for name, value in (("lookahead_ms", lookahead_ms), ("hold_ms", hold_ms))
    )
    builder = FunctionBuilder(function, {"x": shape})
    x = builder["x"]
    builder.require_rank(x, 2, SOUND)
    over = builder.apply("max", builder.apply("mul", builder.apply("abs", x), 1 / threshold), 1.0)
    over = builder.pad(builder.add_axis(over, 1), 2, hold + ahead, ahead, fill=1.0)
    gain_limit = builder.apply("div", 1.0, _largest_of_groups(builder, over, hold + ahead + 1))
    total = builder.add("ramp", Pool("sum", (ahead + 1,), (1,), (1,), no_pads(1)), gain_limit)
    factor = builder.remove_axis(builder.apply("mul", total, 1 / (ahead + 1), name="gain"), 1)
    return builder.model(sound=builder.apply("mul", x, factor, name="sound"))


def _largest_of_groups(builder: FunctionBuilder, x: OutletId, frames: int) -> OutletId:
    """Return the largest of each group of ``frames`` neighbouring frames of x [B, 1, T], in 2 sqrt(frames) steps."""
    taps_near = math.isqrt(frames)
    taps_far = frames // taps_near
    for taps, spacing in ((taps_near, 1), (taps_far, taps_near), (2, frames - taps_near * taps_far)):
        if taps > 1 and spacing:
            x = builder.add("peak", Pool("max", (taps,), (1,), (spacing,), no_pads(1)), x)
    return x


def _difference(builder: FunctionBuilder, x: OutletId, coefficient: float) -> OutletId:
    """Return each sample but the first, minus the previous one times a coefficient."""
    pairs = builder.frame(x, 1, 2, 1)
    before, current = (builder.remove_axis(builder.slice(pairs, 2, index, index + 1), 2) for index in (0, 1))
    return builder.apply("sub", current, builder.apply("mul", before, coefficient), name="difference")


def _integrate_leakily(builder: FunctionBuilder, x: OutletId, coefficient: float) -> OutletId:
    """Return each sample plus a coefficient times the sum so far: a linear recurrent layer of one unit."""
    require_number(builder.function, "coefficient", coefficient, 0, math.nextafter(1, 0))
    batch, frames = builder.shape(x)
    rows = builder.reshape(builder.transpose(x, (1, 0)), frames, batch, 1)
    cell = Cell("rnn", (Activation("affine", 1.0, 0.0),))
    one, back = (
        builder.add_constant(name, np.full((1, 1), value)) for name, value in (("w", 1.0), ("r", coefficient))
    )
    y = builder.add("sum", Recurrent(cell, 1), rows, one, back, builder.add_constant("b", np.zeros(2)))
    return builder.transpose(builder.reshape(y, frames, batch), (1, 0))
