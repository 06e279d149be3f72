"""Logarithms, and what keeps them from silence."""

import math

from pulse.errors import InputError
from pulse.front.builder import FunctionBuilder
from pulse.front.default_shapes import FEATURES
from pulse.front.parameter_checks import require_choice, require_number
from pulse.graph import OutletId
from pulse.models import TypedModel

BASES = {"natural": 1.0, "log2": 1 / math.log(2), "log10": 1 / math.log(10)}
"""The factors of the natural logarithm."""


def log(
    base: str = "natural", floor: float = 1e-10, *, offset: float = 0.0, shape: str = FEATURES
) -> TypedModel:
    """Compute ``log(max(x + offset, floor))``.

    Input    x [...]
    Output   features [...]

    base     ``natural``, ``log2`` or ``log10``
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "log"
    require_choice(function, "base", base, BASES)
    require_number(function, "floor", floor, 0)
    require_number(function, "offset", offset)
    builder = FunctionBuilder(function, {"x": shape})
    x = builder.apply("add", builder["x"], offset) if offset else builder["x"]
    return builder.model(features=floored_log(builder, x, floor, base))


def db(
    of: str = "power",
    reference: float = 1.0,
    *,
    floor: float | None = None,
    top_db: float | None = None,
    maximum: float | None = None,
    shape: str = FEATURES,
) -> TypedModel:
    """Convert to decibels, as ``librosa.power_to_db`` and ``torchaudio.functional.amplitude_to_DB``.

    10 log10(max(x, floor) / max(reference, floor)), twice as much for amplitudes

    Input    x [...]
    Output   features [...]

    of       ``power`` or ``amplitude``
    floor    1e-10 of powers, 1e-5 of amplitudes by default
    top_db   how far below ``maximum`` values may be, in dB: the libraries take the loudest value of the recording,
             which a stream does not know
    Raises   InputError: also if top_db has no maximum
    """
    function = "db"
    factor = 1 if require_choice(function, "of", of, ("power", "amplitude")) == "power" else 2
    floor = require_number(
        function, "floor", 10.0 ** (-10 / factor) if floor is None else floor, 0, above=True
    )
    require_number(function, "reference", reference, 0)
    builder = FunctionBuilder(function, {"x": shape})
    y = decibels(builder, builder["x"], floor, factor, factor * 10 * math.log10(max(reference, floor)))
    if top_db is not None or maximum is not None:
        if top_db is None or maximum is None:
            missing = "maximum" if maximum is None else "top_db"
            raise InputError(
                f"{function}: top_db counts from the loudest value of the whole recording, which a stream does not "
                f"know; fix that value with maximum=, in dB, or omit both ({missing} is missing)"
            )
        lowest = require_number(function, "maximum", maximum) - require_number(function, "top_db", top_db, 0)
        y = builder.apply("max", y, lowest, name="floored")
    return builder.model(features=y)


def whisper_log(maximum: float | None = None, floor: float = 1e-10, shape: str = FEATURES) -> TypedModel:
    """Compute Whisper's logarithm: ``(max(log10(max(x, floor)), maximum - 8) + 4) / 4``.

    Input    x [...], powers in mel bands
    Output   features [...]

    maximum  what Whisper takes of the whole recording, log10 of its loudest value: fixed here
    Raises   InputError: no maximum
    """
    function = "whisper_log"
    if maximum is None:
        raise InputError(
            f"{function}: Whisper floors at 8 below the maximum of the whole recording, which a stream does not know; "
            "fix it with maximum=, the log10 of the loudest value to expect, such as 1.5"
        )
    lowest = require_number(function, "maximum", maximum) - 8
    require_number(function, "floor", floor, 0, above=True)
    builder = FunctionBuilder(function, {"x": shape})
    y = builder.apply("max", floored_log(builder, builder["x"], floor, "log10"), lowest)
    return builder.model(features=builder.apply("mul", builder.apply("add", y, 4.0), 0.25, name="features"))


def floored_log(builder: FunctionBuilder, x: OutletId, floor: float, base: str = "natural") -> OutletId:
    """Return a logarithm of at least ``floor``."""
    y = builder.apply("log", builder.apply("max", x, floor) if floor else x, name="log")
    return y if base == "natural" else builder.apply("mul", y, BASES[base], name=base)


def decibels(
    builder: FunctionBuilder, x: OutletId, floor: float, factor: int = 1, reference: float = 0.0
) -> OutletId:
    """Return decibels of at least ``floor``, minus a reference's."""
    y = builder.apply("log", builder.apply("max", x, floor) if floor else x, name="log")
    y = builder.apply("mul", y, 10 * factor / math.log(10), name="db")
    return builder.apply("sub", y, reference) if reference else y
