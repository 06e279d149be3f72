"""The codes of element types, in the rows of kernels that take several types."""

import numpy as np

F32, F64, I64, I32, U8, I8, BOOL, I16 = range(8)
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
    return {F32: 4, F64: 8, I64: 8, I32: 4, I16: 2}.get(code, 1)
