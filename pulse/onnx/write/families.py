"""Every family of writers; importing this registers them."""

from types import ModuleType

from pulse.onnx.write import (
    attention,
    conv,
    elementwise,
    ends,
    loop,
    matrix,
    memory,
    recurrent,
    resize,
    scan,
    scatter,
    shape,
)

FAMILIES: tuple[ModuleType, ...] = (
    attention,
    conv,
    elementwise,
    ends,
    loop,
    matrix,
    memory,
    recurrent,
    resize,
    scan,
    scatter,
    shape,
)
