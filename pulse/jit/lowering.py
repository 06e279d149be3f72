# pyright: basic
"""All that functions mean to numba; importing this tells it of the language, ``tell_numba`` of what was declared."""

from numba.extending import register_jitable

from pulse.jit import (
    address_lowering,
    atomics_lowering,
    cpu_registers_lowering,
    raw_lowering,
    row_lowering,
    simd_lowering,
    stack_lowering,
    structs_lowering,
)
from pulse.jit.declared import UNTOLD, Dispatcher, Helper, Outlined, StructAt
from pulse.jit.dispatch_lowering import lower_dispatcher, lower_outlined
from pulse.jit.foreign_lowering import lower_c_function
from pulse.jit.structs_lowering import lower_struct_at

LANGUAGE = (
    address_lowering,
    atomics_lowering,
    cpu_registers_lowering,
    raw_lowering,
    row_lowering,
    simd_lowering,
    stack_lowering,
    structs_lowering,
)


def tell_numba() -> None:
    """Let compiled functions call what was declared since the last time."""
    while UNTOLD:
        declared = UNTOLD.pop(0)
        if isinstance(declared, Helper):
            register_jitable(**declared.options)(declared.function)
        elif isinstance(declared, Dispatcher):
            lower_dispatcher(declared)
        elif isinstance(declared, Outlined):
            lower_outlined(declared)
        elif isinstance(declared, StructAt):
            lower_struct_at(declared)
        else:
            lower_c_function(declared)
