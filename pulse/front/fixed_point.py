"""Integer steps of a model, and their 16-bit Fourier transform."""

from typing import TypeAlias

import numpy as np

from pulse.facts import Array
from pulse.front.builder import FunctionBuilder
from pulse.front.micro_tables import cos_sin_table
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Cast
from pulse.ops.gather import Gather
from pulse.typed import add_constant

FRACTION_BITS = 15
"""The bits after the point of a factor."""
MAX_FRACTION = (1 << FRACTION_BITS) - 1
"""The largest 15-bit fraction."""
RADIX = 4
"""Each pass joins this many transforms."""
ComplexWires = tuple[OutletId, OutletId]
"""Real and imaginary parts."""
Number: TypeAlias = OutletId | Array | float


class Integers:
    """Steps of a model on integers below 2**53, in f64: exact everywhere, and in every runtime of ONNX."""

    def __init__(self, builder: FunctionBuilder) -> None:
        self.builder = builder

    def add_constant(self, value: Array | float) -> OutletId:
        """Add a constant."""
        return add_constant(
            self.builder.graph, "integers", np.ascontiguousarray(np.asarray(value, np.float64))
        )

    def apply(self, function: str, *operands: Number) -> OutletId:
        """Add an elementwise function; numbers become constants."""
        wires = [
            operand if isinstance(operand, OutletId) else self.add_constant(operand) for operand in operands
        ]
        return self.builder.apply(function, *wires)

    def add(self, x: Number, y: Number) -> OutletId:
        """Return ``x + y``."""
        return self.apply("add", x, y)

    def sub(self, x: Number, y: Number) -> OutletId:
        """Return ``x - y``."""
        return self.apply("sub", x, y)

    def mul(self, x: Number, y: Number) -> OutletId:
        """Return ``x * y``."""
        return self.apply("mul", x, y)

    def shift_right(self, x: OutletId, bits: int) -> OutletId:
        """Shift to the right, which rounds down."""
        return self.shift(x, 2.0**-bits)

    def shift(self, x: OutletId, factor: Number) -> OutletId:
        """Multiply by a power of two and drop the fraction: a shift of bits."""
        return self.apply("floor", self.mul(x, factor))

    def low_bits(self, x: OutletId, bits: int) -> OutletId:
        """Return the lowest ``bits`` binary digits."""
        return self.sub(x, self.mul(self.shift_right(x, bits), 1 << bits))

    def cast(self, x: OutletId, dtype: type[np.generic] = np.float64) -> OutletId:
        """Cast to a type."""
        return self.builder.add("cast", Cast(np.dtype(dtype)), x)

    def choose(self, condition: OutletId, x: Number, y: Number) -> OutletId:
        """Select x if a condition holds, otherwise y."""
        wires = [
            operand if isinstance(operand, OutletId) else self.add_constant(operand) for operand in (x, y)
        ]
        return self.builder.apply("where", condition, *wires)

    def pick(self, x: OutletId, indices: Array, axis: int) -> OutletId:
        """Return entries of an axis."""
        places = add_constant(self.builder.graph, "places", np.ascontiguousarray(indices, np.int64))
        return self.builder.add("picked", Gather(axis), x, places)

    def look_up(self, table: Array, indices: OutletId) -> OutletId:
        """Return entries of a table [N], by i64."""
        return self.builder.add("looked_up", Gather(0), self.add_constant(table), indices)

    def bit_length(self, x: OutletId, max_bits: int) -> tuple[OutletId, OutletId]:
        """Return how many binary digits x has, 0 of 0 and at most ``max_bits``, a power of two; and 2**-digits."""
        count, power, step = self.add_constant(0), self.add_constant(1), max_bits // 2
        while step:
            is_larger = self.apply("greater_equal", x, 1 << step)
            factor = self.choose(is_larger, 2.0**-step, 1)
            x, power = self.mul(x, factor), self.mul(power, factor)
            count = self.add(count, self.choose(is_larger, step, 0))
            step //= 2
        is_larger = self.apply("greater_equal", x, 1)
        return self.add(count, self.choose(is_larger, 1, 0)), self.mul(power, self.choose(is_larger, 0.5, 1))

    def wrap(self, x: OutletId) -> OutletId:
        """Wrap to a 16-bit integer."""
        return self.sub(x, self.mul(self.shift_right(self.add(x, 1 << 15), 16), 1 << 16))

    def fraction(self, x: OutletId) -> OutletId:
        """Return a product with a factor that was multiplied by 2**15, rounded."""
        return self.shift_right(self.add(x, 1 << (FRACTION_BITS - 1)), FRACTION_BITS)

    def divide(self, x: OutletId, by: int) -> OutletId:
        """Divide as kissfft does: multiply by 32767 // by, then divide by 2**15."""
        return self.fraction(self.mul(x, MAX_FRACTION // by))

    def rotate(self, x: ComplexWires, factor: tuple[Array, Array]) -> ComplexWires:
        """Multiply by complex constants."""
        (re, im), (c, s) = x, factor
        return (
            self.fraction(self.sub(self.mul(re, c), self.mul(im, s))),
            self.fraction(self.add(self.mul(re, s), self.mul(im, c))),
        )


def digit_reversal(count: int) -> Array:
    """Return 0 … count - 1 with their digits to base four in reverse; ``count`` is a power of four."""
    indices, remaining_digits = np.zeros(count, np.int64), np.arange(count)
    size = count
    while size > 1:
        indices = indices * RADIX + remaining_digits % RADIX
        remaining_digits = remaining_digits // RADIX
        size = size // RADIX
    return indices


def transform(z: Integers, x: OutletId, count: int) -> ComplexWires:
    """Return the transform of kissfft in 16 bits, of ``2 * count`` real points, divided by as much.

    x        [B, frames, 2*count], count a power of four
    Returns  bins 1 … count - 1 in this order: [B, frames, count - 1]
    """
    builder, order = z.builder, 2 * digit_reversal(count)
    parts = z.pick(x, order, 2), z.pick(x, order + 1, 2)
    step = 1
    while step < count:
        parts = _butterflies(z, parts, count, step)
        step *= RADIX
    half = count // 2
    near = [z.divide(builder.slice(part, 2, 1, half + 1), 2) for part in parts]
    mirror = count - np.arange(1, half + 1)
    mirrored_re, mirrored_im = (z.pick(part, mirror, 2) for part in parts)
    far = [z.divide(part, 2) for part in (mirrored_re, z.wrap(z.sub(0, mirrored_im)))]
    even = [z.add(near_wire, far_wire) for near_wire, far_wire in zip(near, far)]
    odd = z.sub(near[0], far[0]), z.sub(near[1], far[1])
    re, im = z.rotate(odd, cos_sin_table(-np.pi * ((np.arange(half) + 1) / count + 0.5)))
    lower = z.shift_right(z.add(even[0], re), 1), z.shift_right(z.add(even[1], im), 1)
    upper = z.shift_right(z.sub(even[0], re), 1), z.shift_right(z.sub(im, even[1]), 1)
    back = np.arange(half)[::-1]
    re, im = (
        builder.add("bins", Concat(2), builder.slice(low, 2, 0, half - 1), z.pick(high, back, 2))
        for low, high in zip(lower, upper)
    )
    return re, im


def _butterflies(z: Integers, x: ComplexWires, count: int, step: int) -> ComplexWires:
    """Combine transforms of step points to transforms of 4*step points, [B, frames, count]."""
    builder = z.builder
    batch, frames = builder.shape(x[0])[:2]
    split = [
        builder.reshape(z.divide(part, RADIX), batch, frames, count // (RADIX * step), RADIX, step)
        for part in x
    ]
    phase = -2 * np.pi * np.outer(np.arange(1, RADIX), np.arange(step)) * (count // (RADIX * step)) / count
    rotated = z.rotate(
        (builder.slice(split[0], 3, 1, RADIX), builder.slice(split[1], 3, 1, RADIX)), cos_sin_table(phase)
    )
    first = [builder.slice(part, 3, 0, 1) for part in split]
    one, two, three = ([builder.slice(part, 3, index, index + 1) for part in rotated] for index in range(3))
    plus, minus = ([z.apply(function, *pair) for pair in zip(first, two)] for function in ("add", "sub"))
    total, other = ([z.apply(kind, *pair) for pair in zip(one, three)] for kind in ("add", "sub"))
    real = (
        z.add(plus[0], total[0]), z.add(minus[0], other[1]), z.sub(plus[0], total[0]), z.sub(minus[0], other[1])
    )  # fmt: skip
    imaginary = (
        z.add(plus[1], total[1]), z.sub(minus[1], other[0]), z.sub(plus[1], total[1]), z.add(minus[1], other[0])
    )  # fmt: skip
    re, im = (
        z.wrap(builder.reshape(builder.concat(*part, axis=3), batch, frames, count))
        for part in (real, imaginary)
    )
    return re, im
