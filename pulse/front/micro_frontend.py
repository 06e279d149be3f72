"""The integer front end of TensorFlow Lite Micro and microWakeWord."""

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.front.builder import FunctionBuilder
from pulse.front.fixed_point import Integers, transform
from pulse.front.micro_tables import (
    FILTER_BITS,
    LOG_BITS,
    LOG_SEGMENT_BITS,
    WINDOW_BITS,
    MelBank,
    bank_table,
    gain_tables,
    log_table,
    window_table,
)
from pulse.front.parameter_checks import require_count, require_flag, require_number
from pulse.front.triangles import require_band
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.cumulative import CumSum
from pulse.ops.reduce import Reduce
from pulse.ops.scan import Scan, ScanAxis
from pulse.support.powers import next_power_of_two
from pulse.wiring import wire

TRANSFORM_POINTS = (32, 128, 512, 2048)
"""Lengths of transforms: twice a power of four."""
NOISE_BITS, SMOOTHING_BITS = 14, 10
SNR_BITS, OUTPUT_BITS = 12, 6
LOG_FACTOR = 45426
"""log(2) * 2**16."""


def micro_frontend(
    sample_rate: int = 16000,
    window_ms: int = 30,
    *,
    step_ms: int = 10,
    num_channels: int = 40,
    lower_band_limit: float = 125.0,
    upper_band_limit: float = 7500.0,
    even_smoothing: float = 0.025,
    odd_smoothing: float = 0.06,
    min_signal_remaining: float = 0.05,
    enable_pcan: bool = True,
    pcan_strength: float = 0.95,
    pcan_offset: float = 80.0,
    gain_bits: int = 21,
    enable_log: bool = True,
    scale_shift: int = 6,
    output_scale: float = 0.0390625,
    scale: float = 32768.0,
    shape: str = "1,T",
) -> TypedModel:
    """Compute TensorFlow Lite Micro's audio features, in its integers: what microWakeWord's models take.

    Window, 16-bit transform, mel bands, noise reduction, gain control (PCAN), logarithm.

    Input    x [B, T]
    Output   features [B, frames, num_channels], integers from 0 to 65535 times ``output_scale``,
             frames = (T - window) // step + 1
    Delay    a frame is ready with its last sample

    scale         the samples are multiplied with it, rounded and limited to 16 bits
    output_scale  10/256 as in ``pymicro-features``; 1: the integers themselves
    even_smoothing, odd_smoothing  how fast the noise estimates of even and odd channels follow
    min_signal_remaining  the minimum remaining fraction of a band
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "micro_frontend"
    require_count(function, "sample_rate", sample_rate)
    size, hop, points = _frame_sizes(function, sample_rate, window_ms, step_ms)
    bank = _filter_bank(function, sample_rate, points, num_channels, lower_band_limit, upper_band_limit)
    require_number(function, "even_smoothing", even_smoothing, 0, 1)
    require_number(function, "odd_smoothing", odd_smoothing, 0, 1)
    remaining = require_number(function, "min_signal_remaining", min_signal_remaining, 0, 1)
    require_flag(function, "enable_pcan", enable_pcan)
    require_flag(function, "enable_log", enable_log)
    require_number(function, "pcan_strength", pcan_strength, 0, 4)
    require_number(function, "pcan_offset", pcan_offset, 0, above=True)
    require_number(function, "scale", scale, 0, above=True)
    require_number(function, "output_scale", output_scale, 0, above=True)
    correction = points.bit_length() - 1 - FILTER_BITS // 2
    require_count(function, "gain_bits", gain_bits, max(0, correction) + SNR_BITS, 30)
    require_count(function, "scale_shift", scale_shift, 0, 12)

    builder = FunctionBuilder(function, {"x": shape})
    z = Integers(builder)
    samples = _samples(z, scale)
    bands = _band_levels(z, builder.frame(samples, 1, size, hop), points, bank)
    estimate = _noise(z, bands, [even_smoothing, odd_smoothing])
    signal = _reduce_noise(z, bands, estimate, int(np.float32(remaining) * (1 << NOISE_BITS)))
    if enable_pcan:
        tables = gain_tables(SMOOTHING_BITS - correction, gain_bits, pcan_strength, pcan_offset)
        gain = _gain(z, estimate, *tables)
        signal = _shrink(z, z.shift_right(z.mul(signal, gain), gain_bits - correction - SNR_BITS))
    if enable_log:
        signal = _logarithm(z, z.shift(signal, 2.0**correction), scale_shift)
    features = z.cast(z.apply("min", signal, 65535), np.float32)
    return builder.model(
        features=builder.apply("mul", features, output_scale) if output_scale != 1 else features
    )


def _frame_sizes(function: str, rate_hz: int, window_ms: int, step_ms: int) -> tuple[int, int, int]:
    """Return samples of a window and of a step, and the points of a transform."""
    size = require_count(function, "window_ms", window_ms, 1, 10000) * rate_hz // 1000
    hop = require_count(function, "step_ms", step_ms, 1, 10000) * rate_hz // 1000
    points = next_power_of_two(size)
    if points not in TRANSFORM_POINTS or hop < 1:
        raise InputError(
            f"{function}: window_ms={window_ms!r} at {rate_hz} Hz takes transforms of {points} points; allowed are "
            f"{', '.join(map(str, TRANSFORM_POINTS))}, and steps of at least one sample"
        )
    return size, hop, points


def _samples(z: Integers, scale: float) -> OutletId:
    """Return the input x [B, T] in 16 bits, B a number."""
    builder, x = z.builder, z.builder["x"]
    builder.require_rank(x, 2, "1,T")
    builder.require_fixed(x, 0, "the streams")
    loud = builder.apply("round", builder.apply("mul", x, scale) if scale != 1 else x)
    return z.cast(builder.apply("min", builder.apply("max", loud, -32768.0), 32767.0))


def _filter_bank(
    function: str, rate_hz: int, points: int, channels: int, low_hz: float, high_hz: float
) -> MelBank:
    """Return the mel bands. Raises InputError: one is outside the transform's bins."""
    require_count(function, "num_channels", channels, 1, 512)
    low_hz = require_number(function, "lower_band_limit", low_hz, 0)
    high_hz = require_number(function, "upper_band_limit", high_hz, 0)
    require_band(function, low_hz, high_hz, rate_hz)
    bank = bank_table(channels, low_hz, high_hz, rate_hz, points // 2 + 1)
    if bank.end > points // 2 or bank.start < 2:
        raise InputError(
            f"{function}: bands from {low_hz:g} to {high_hz:g} Hz must lie between the bins 2 and {points // 2 - 1} of "
            f"{rate_hz / points:g} Hz each; choose other limits"
        )
    return bank


def _band_levels(z: Integers, frames: OutletId, points: int, bank: MelBank) -> OutletId:
    """Return the roots of the energies of the bands [B, frames, channels], from frames of samples."""
    size = int(z.builder.shape(frames)[2])
    windowed = z.shift_right(z.mul(frames, window_table(size)), WINDOW_BITS)
    factor = _headroom(z, windowed)
    padded = z.builder.pad(z.wrap(z.mul(windowed, factor)), 2, 0, points - size)
    re, im = transform(z, padded, points // 2)
    energy = z.add(z.mul(re, re), z.mul(im, im))
    return z.shift(_root(z, _bands(z, energy, bank)), z.apply("div", 1, factor))


def _headroom(z: Integers, x: OutletId) -> OutletId:
    """Return the largest power of two by which a frame [B, frames, size] stays within 16 bits: [B, frames, 1]."""
    magnitude = z.apply("abs", x)
    # -32768 has no 16-bit magnitude, and counts as nothing
    magnitude = z.choose(z.apply("less", magnitude, 32768), magnitude, 0)
    largest = z.builder.add("largest", Reduce("max", (2,), True), z.cast(magnitude, np.float32))
    return z.mul(z.bit_length(z.cast(largest), 16)[1], 1 << 15)


def _bands(z: Integers, energy: OutletId, bank: MelBank) -> OutletId:
    """Return sums of weighted bins [B, frames, bins 1 …]: the rising half of a band, the falling half of the next."""
    builder = z.builder
    # a leading bin of weight 0, so that each sum is a difference of two running sums
    bins = builder.slice(energy, 2, bank.start - 2, bank.end - 1)
    ends = bank.edges - bank.start
    totals: list[OutletId] = []
    for weights, first, last in (
        (bank.weights, ends[1:-1], ends[2:]),
        (bank.complements, ends[:-2], ends[1:-1]),
    ):
        running = wire(builder.graph, "running", CumSum(2), [z.mul(bins, np.append(0, weights))])[0]
        totals.append(z.sub(z.pick(running, last, 2), z.pick(running, first, 2)))
    return z.add(*totals)


def _root(z: Integers, x: OutletId) -> OutletId:
    """Return the nearest integer to the root; of a 32-bit number never 2**16."""
    root = z.apply("floor", z.apply("sqrt", x))
    remainder = z.sub(x, z.mul(root, root))
    nearest = z.choose(z.apply("greater", remainder, root), z.add(root, 1), root)
    return z.choose(z.apply("less", x, 1 << 32), z.apply("min", nearest, (1 << 16) - 1), nearest)


def _noise(z: Integers, bands: OutletId, smoothing: list[float]) -> OutletId:
    """Return the noise estimates [B, frames, channels], after each frame; 2**10 times as fine."""
    builder = z.builder
    batch, channels = int(builder.shape(bands)[0]), int(builder.shape(bands)[2])
    factors = np.array([int(np.float32(share) * (1 << NOISE_BITS)) for share in smoothing])
    factors = factors[np.arange(channels) % 2]
    state = f"{batch},{channels},f64"
    inner = FunctionBuilder(f"{builder.function}.noise", {"estimate": state, "band": state}, np.float64)
    y = Integers(inner)
    new = y.mul(y.mul(inner["band"], 1 << SMOOTHING_BITS), factors)
    old = y.mul(inner["estimate"], (1 << NOISE_BITS) - factors)
    after = y.shift_right(y.add(new, old), NOISE_BITS)
    inner.graph.set_outputs([after, after], ["after", "given"])
    body = TypedModel(inner.graph, builder.scope, inner.function)
    scan = Scan(body, ("estimate",), ("band",), (), (ScanAxis(1),), (ScanAxis(1),))
    begin = z.add_constant(np.zeros((batch, channels)))
    return wire(builder.graph, "noise", scan, [bands, begin])[0]


def _reduce_noise(z: Integers, bands: OutletId, estimate: OutletId, remaining: int) -> OutletId:
    """Return the bands minus their noise."""
    loud = z.mul(bands, 1 << SMOOTHING_BITS)
    signal = z.shift_right(z.sub(loud, z.apply("min", estimate, loud)), SMOOTHING_BITS)
    return z.apply("max", signal, z.shift_right(z.mul(bands, remaining), NOISE_BITS))


def _gain(z: Integers, x: OutletId, small: Array, parabolas: Array) -> OutletId:
    """Return the gain for a noise estimate: from a parabola for each number of its bits."""
    bits, power = z.bit_length(x, 32)
    fraction = z.low_bits(z.shift(x, z.mul(power, 1 << 11)), 10)
    value, slope, curve = (z.look_up(table, z.cast(bits, np.int64)) for table in parabolas)
    inner = z.add(z.shift_right(z.mul(curve, fraction), 5), z.mul(slope, 32))
    gain = z.add(z.shift_right(z.add(z.mul(inner, fraction), 1 << 14), 15), value)
    for limit, table_gain in reversed(list(enumerate(small))):
        gain = z.choose(z.apply("less_equal", x, limit), table_gain, gain)
    return gain


def _shrink(z: Integers, snr: OutletId) -> OutletId:
    """Return a parabola continued by a line."""
    low = z.apply("min", snr, 2 << SNR_BITS)
    square = z.shift_right(z.mul(low, low), 2 + 2 * SNR_BITS - OUTPUT_BITS)
    line = z.sub(z.shift_right(snr, SNR_BITS - OUTPUT_BITS), 1 << OUTPUT_BITS)
    return z.choose(z.apply("less", snr, 2 << SNR_BITS), square, line)


def _logarithm(z: Integers, x: OutletId, scale_shift: int) -> OutletId:
    """Return the natural logarithm times 2**scale_shift; 0 of 0 and 1."""
    operand = z.choose(z.apply("greater", x, 2), x, 2)
    bits, power = z.bit_length(operand, 32)
    # power is 2**-bits, and the first digit means 2**(bits - 1)
    rest = z.shift(z.sub(z.mul(z.mul(operand, power), 2), 1), 1 << LOG_BITS)
    segment = z.cast(z.shift_right(rest, LOG_BITS - LOG_SEGMENT_BITS), np.int64)
    table = log_table()
    base, slope = z.look_up(table, segment), z.look_up(np.append(np.diff(table), 0), segment)
    inside = z.low_bits(rest, LOG_BITS - LOG_SEGMENT_BITS)
    fraction = z.add(z.add(rest, base), z.shift_right(z.mul(slope, inside), LOG_BITS))
    half = 1 << (LOG_BITS - 1)
    binary = z.add(z.mul(z.sub(bits, 1), 1 << LOG_BITS), fraction)
    natural = z.shift_right(z.add(z.mul(binary, LOG_FACTOR), half), LOG_BITS)
    logarithm = z.shift_right(z.add(z.mul(natural, 1 << scale_shift), half), LOG_BITS)
    return z.choose(z.apply("greater", x, 1), logarithm, 0)
