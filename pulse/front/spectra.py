"""Complex numbers in spectra: magnitude, phase, power, masks."""

from pulse.front.builder import FunctionBuilder
from pulse.front.parameter_checks import require_choice, require_number
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.support.wording import count_of

DEFAULT = "1,257,frames,2"
MIN_POWER = 1e-36
"""The smallest squared magnitude that is used as a divisor: an f32 with all its bits."""
MASKS = ("real", "ratio", "complex", "polar")


def magnitude(epsilon: float = 0.0, axis: int = -1, shape: str = DEFAULT) -> TypedModel:
    """Compute the magnitude of complex numbers: ``sqrt(re² + im² + epsilon)``.

    Input    x [...]; the first half of ``axis`` are real parts, the second half imaginary ones
    Output   magnitude, without the axis if its size is 2
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    return _power_of_parts("magnitude", "magnitude", 0.5, epsilon, axis, shape)


def power(exponent: float = 2.0, epsilon: float = 0.0, *, axis: int = -1, shape: str = DEFAULT) -> TypedModel:
    """Compute a power of the magnitude of complex numbers: ``(re² + im² + epsilon)^(exponent/2)``.

    Input    x [...]; the first half of ``axis`` are real parts, the second half imaginary ones
    Output   power, without the axis if its size is 2
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    require_number("power", "exponent", exponent, 0, above=True)
    return _power_of_parts("power", "power", exponent / 2, epsilon, axis, shape)


def phase(axis: int = -1, shape: str = DEFAULT) -> TypedModel:
    """Compute the phase of complex numbers, ``atan2(im, re)`` in -π … π; a zero has no sign, and of two zeros it is 0.

    Input    x [...]; the first half of ``axis`` are real parts, the second half imaginary ones
    Output   phase, without the axis if its size is 2
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    builder = FunctionBuilder("phase", {"x": shape})
    real, imaginary, axis, single = split_complex(builder, builder["x"], axis)
    y = builder.apply("atan2", imaginary, real, name="phase")
    return builder.model(phase=builder.remove_axis(y, axis) if single else y)


def from_polar(axis: int = -1, shape: str = "1,257,frames") -> TypedModel:
    """Convert a magnitude and a phase to complex numbers.

    Inputs   x, the magnitude, and phase, both [...]
    Output   spectrum with a new axis of real and imaginary part, the last one by default
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    builder = FunctionBuilder("from_polar", {"x": shape, "phase": shape})
    axis = builder.new_axis(builder["x"], axis)
    pair = from_angle(builder, builder["x"], builder["phase"])
    return builder.model(spectrum=builder.concat(*(builder.add_axis(part, axis) for part in pair), axis=axis))


def mask(
    kind: str = "real", axis: int = -1, *, shape: str = DEFAULT, mask_shape: str | None = None
) -> TypedModel:
    """Multiply a spectrum by a mask.

    ``real``     the mask is a factor for each bin
    ``ratio``    the same, limited to 0 … 1
    ``complex``  the mask is a complex number for each bin
    ``polar``    the mask is a complex number whose magnitude goes through tanh (DCCRN's E)

    Inputs   x [...], complex numbers whose parts are the halves of ``axis``; mask: of a complex one the shape of x, of
             a real one that of x without the axis
    Output   spectrum, as x
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "mask"
    require_choice(function, "kind", kind, MASKS)
    real = kind in ("real", "ratio")
    without = _shape_without_parts(FunctionBuilder(function, {"x": shape}), axis)
    builder = FunctionBuilder(function, {"x": shape, "mask": mask_shape or (without if real else shape)})
    x, m = builder["x"], builder["mask"]
    part_axis = builder.axis(x, axis)
    if real:
        builder.require_rank(m, without.count(",") + 1, without)
        m = builder.apply("max", builder.apply("min", m, 1.0), 0.0) if kind == "ratio" else m
        factor = (
            builder.add_axis(m, part_axis)
            if builder.rank(m) < builder.rank(x)
            else builder.concat(m, m, axis=part_axis)
        )
        return builder.model(spectrum=builder.apply("mul", x, factor, name="spectrum"))
    if builder.shape(m) != builder.shape(x):
        raise builder.error(
            f"a {kind} mask of shape {builder.text(m)!r} must have the shape {builder.text(x)!r} of x"
        )
    a, b, _, _ = split_complex(builder, x, part_axis)
    c, d, _, _ = split_complex(builder, m, part_axis)
    if kind == "polar":
        size = magnitude_of(builder, c, d)
        factor = builder.apply("div", builder.apply("tanh", size), builder.apply("max", size, 1e-12))
        c, d = builder.apply("mul", c, factor), builder.apply("mul", d, factor)
    re = builder.apply("sub", builder.apply("mul", a, c), builder.apply("mul", b, d), name="real")
    im = builder.apply("add", builder.apply("mul", a, d), builder.apply("mul", b, c), name="imaginary")
    return builder.model(spectrum=builder.concat(re, im, axis=part_axis))


def compress(
    exponent: float = 0.3,
    of: str = "complex",
    *,
    epsilon: float = 0.0,
    axis: int = -1,
    shape: str = DEFAULT,
) -> TypedModel:
    """Raise magnitudes to ``exponent``, and keep phases and signs: power-law compression.

    ``complex``  re and im times ``(re² + im² + epsilon)^((exponent - 1)/2)``; 0 if both are 0
    ``real``     ``sign(x) * (|x| + epsilon)^exponent``, for example of magnitudes

    Input    x [...]; of complex numbers the first half of ``axis`` are real parts, the second half imaginary ones
    Output   compressed, as x

    exponent  above 0; 1/exponent expands again
    Raises    InputError: an option is out of range, or the shape does not fit
    """
    function = "compress"
    require_number(function, "exponent", exponent, 0, above=True)
    require_number(function, "epsilon", epsilon, 0)
    builder = FunctionBuilder(function, {"x": shape})
    x = builder["x"]
    if require_choice(function, "of", of, ("complex", "real")) == "real":
        size = builder.apply("abs", x)
        size = raise_power(builder, builder.apply("add", size, epsilon) if epsilon else size, exponent)
        return builder.model(
            compressed=builder.apply("mul", builder.apply("sign", x), size, name="compressed")
        )
    real, imaginary, part_axis, _ = split_complex(builder, x, axis)
    squares = square(builder, real, imaginary)
    squares = builder.apply("max", builder.apply("add", squares, epsilon) if epsilon else squares, MIN_POWER)
    factor = raise_power(builder, squares, (exponent - 1) / 2)
    parts = (builder.apply("mul", part, factor) for part in (real, imaginary))
    return builder.model(compressed=builder.concat(*parts, axis=part_axis))


def square(builder: FunctionBuilder, real: OutletId, imaginary: OutletId) -> OutletId:
    """Return ``re² + im²``."""
    return builder.apply(
        "add", builder.apply("mul", real, real), builder.apply("mul", imaginary, imaginary), name="power"
    )


def power_of(builder: FunctionBuilder, spectrum: OutletId) -> OutletId:
    """Return the power [B, T, F] of a spectrum [B, T, 2F], real parts first."""
    real, imaginary, _, _ = split_complex(builder, spectrum, 2)
    return square(builder, real, imaginary)


def magnitude_of(builder: FunctionBuilder, real: OutletId, imaginary: OutletId) -> OutletId:
    """Return ``sqrt(re² + im²)``."""
    return builder.apply("sqrt", square(builder, real, imaginary), name="magnitude")


def from_angle(builder: FunctionBuilder, radius: OutletId, angle: OutletId) -> tuple[OutletId, OutletId]:
    """Return real and imaginary part of a magnitude and a phase."""
    return (
        builder.apply("mul", radius, builder.apply("cos", angle), name="real"),
        builder.apply("mul", radius, builder.apply("sin", angle), name="imaginary"),
    )


def raise_power(builder: FunctionBuilder, squares: OutletId, exponent: float) -> OutletId:
    """Return a power of positive numbers."""
    if exponent == 1:
        return squares
    if exponent == 0.5:
        return builder.apply("sqrt", squares)
    return builder.apply("pow", squares, exponent)


def _power_of_parts(
    function: str, name: str, exponent: float, epsilon: float, axis: int, shape: str
) -> TypedModel:
    require_number(function, "epsilon", epsilon, 0)
    builder = FunctionBuilder(function, {"x": shape})
    real, imaginary, axis, single = split_complex(builder, builder["x"], axis)
    y = square(builder, real, imaginary)
    y = raise_power(builder, builder.apply("add", y, epsilon) if epsilon else y, exponent)
    return builder.model(**{name: builder.remove_axis(y, axis) if single else y})


def split_complex(
    builder: FunctionBuilder, x: OutletId, axis: object
) -> tuple[OutletId, OutletId, int, bool]:
    """Return real parts, imaginary parts, their axis, and whether it has one of each.

    Raises InputError: no such axis, or an odd number of entries
    """
    part_axis = builder.axis(x, axis)
    size = builder.require_fixed(x, part_axis, "real and imaginary parts")
    if size % 2:
        raise builder.error(
            f"axis {part_axis} of {builder.text(x)!r} has {count_of(size, 'entry', 'entries')}, not halves of real "
            "and imaginary parts"
        )
    half = size // 2
    return (
        builder.slice(x, part_axis, 0, half, "real"),
        builder.slice(x, part_axis, half, size, "imaginary"),
        part_axis,
        half == 1,
    )


def _shape_without_parts(builder: FunctionBuilder, axis: object) -> str:
    """Return the shape of x without its parts."""
    x = builder["x"]
    _, _, part_axis, single = split_complex(builder, x, axis)
    dims = list(map(str, builder.shape(x)))
    return ",".join(
        [*dims[:part_axis], *([] if single else [str(int(dims[part_axis]) // 2)]), *dims[part_axis + 1 :]]
    )
