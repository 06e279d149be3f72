"""Every family of translators; importing this registers them."""

from types import ModuleType

from pulse.onnx import (
    constants,
    conv,
    elementwise,
    matmul,
    norm,
    pad,
    pool,
    recurrent,
    reduce,
    resize,
    search,
    shape,
    slicing,
    spectral,
)

FAMILIES: tuple[ModuleType, ...] = (
    constants,
    conv,
    elementwise,
    matmul,
    norm,
    pad,
    pool,
    recurrent,
    reduce,
    resize,
    search,
    shape,
    slicing,
    spectral,
)
