"""Numbers as the codes of a quantised model, and back."""

import numpy as np

from pulse.facts import F32
from pulse.front.builder import FunctionBuilder
from pulse.front.parameter_checks import require_choice, require_count, require_number
from pulse.models import TypedModel
from pulse.ops.elementwise import Cast

TYPES = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16}
DEFAULT_SHAPE = "1,frames,40"


def quantize(scale: float, zero: int = 0, type: str = "int8", shape: str = DEFAULT_SHAPE) -> TypedModel:
    """Convert numbers to codes: ``rint(x / scale) + zero`` inside the range of the type, halves to even.

    Input    x [...]
    Output   codes [...], of the type
    Delay    none

    scale, zero   the values of the model's input in its file
    type     int8, uint8 or int16
    Raises   InputError: an option is out of range, or the shape does not fit
    Source   QUANTIZE of LiteRT, which multiplies with the f32 reciprocal of the scale
    """
    function = "quantize"
    info = np.iinfo(TYPES[require_choice(function, "type", type, TYPES)])
    require_number(function, "scale", scale, 0, above=True)
    require_count(function, "zero", zero, int(info.min), int(info.max))
    builder = FunctionBuilder(function, {"x": shape})
    steps = builder.apply(
        "round", builder.apply("mul", builder["x"], float(np.float32(1) / np.float32(scale)))
    )
    clipped = builder.apply(
        "min", builder.apply("max", steps, float(info.min - zero)), float(info.max - zero)
    )
    codes = builder.apply("add", clipped, float(zero))
    return builder.model(codes=builder.add("codes", Cast(np.dtype(TYPES[type])), codes))


def dequantize(scale: float, zero: int = 0, type: str = "uint8", shape: str = DEFAULT_SHAPE) -> TypedModel:
    """Convert codes to numbers: ``(x - zero) * scale``.

    Input    x [...], of the type
    Output   values [...]
    Delay    none

    scale, zero   the values of the model's output in its file
    type     int8, uint8 or int16
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "dequantize"
    info = np.iinfo(TYPES[require_choice(function, "type", type, TYPES)])
    require_number(function, "scale", scale, 0, above=True)
    require_count(function, "zero", zero, int(info.min), int(info.max))
    short = {"int8": "i8", "uint8": "u8", "int16": "i16"}[type]
    builder = FunctionBuilder(function, {"x": f"{shape},{short}"}, TYPES[type])
    x = builder.add("numbers", Cast(F32), builder["x"])
    return builder.model(
        values=builder.apply("mul", builder.apply("sub", x, float(zero)), scale, name="values")
    )
