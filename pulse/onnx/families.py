"""Every family of translators; importing this registers them."""

from types import ModuleType

from pulse.onnx import (
    attention,
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
    scan,
    search,
    shape,
    slicing,
    spectral,
)

FAMILIES: tuple[ModuleType, ...] = (
    attention,
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
    scan,
    search,
    shape,
    slicing,
    spectral,
)
