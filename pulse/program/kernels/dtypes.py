"""The codes of element types, in the rows of kernels that take several types."""

import numpy as np

F32_CODE, F64_CODE, I64_CODE, I32_CODE, U8_CODE, I8_CODE, BOOL_CODE, I16_CODE = range(8)
"""The code of each type."""
CODES = {
    np.dtype(dtype): code
    for code, dtype in enumerate(
        (np.float32, np.float64, np.int64, np.int32, np.uint8, np.int8, np.bool_, np.int16)
    )
}
"""The code of each type of numpy."""


def width_of(code: int) -> int:
    """Return the bytes of an element; 1 for an unknown code."""
    return {F32_CODE: 4, F64_CODE: 8, I64_CODE: 8, I32_CODE: 4, I16_CODE: 2}.get(code, 1)
