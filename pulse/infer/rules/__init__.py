"""The rules, by family; importing this registers them."""

from types import ModuleType

from pulse.infer.rules import conv, elementwise, matmul, movement, norm, recurrent, reduce, shape, slicing

FAMILIES: tuple[ModuleType, ...] = (
    conv,
    elementwise,
    matmul,
    movement,
    norm,
    recurrent,
    reduce,
    shape,
    slicing,
)
