"""The codes of element types, in the rows of kernels that take several types."""

import numpy as np

F32_CODE, F64_CODE, I64_CODE, I32_CODE, U8_CODE, I8_CODE, BOOL_CODE, I16_CODE, U16_CODE, F16_CODE = range(10)
"""The code of each type."""
CODES = {
    np.dtype(dtype): code
    for code, dtype in enumerate(
        (
            np.float32,
            np.float64,
            np.int64,
            np.int32,
            np.uint8,
            np.int8,
            np.bool_,
            np.int16,
            np.uint16,
            np.float16,
        )
    )
}
"""The code of each type of numpy."""

_WIDTHS = {code: dtype.itemsize for dtype, code in CODES.items()}


def width_of(code: int) -> int:
    """Return the bytes of an element; 1 for an unknown code."""
    return _WIDTHS.get(code, 1)
