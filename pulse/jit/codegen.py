# pyright: basic
"""Register with numba: importing this registers the language, ``register_with_numba`` the declared functions."""

from numba.extending import register_jitable

from pulse.jit import (
    address_codegen,
    atomics_codegen,
    cpu_registers_codegen,
    dots_codegen,
    raw_codegen,
    row_codegen,
    simd_codegen,
    simd_memory_codegen,
    stack_codegen,
    structs_codegen,
)
from pulse.jit.declared import UNREGISTERED, Dispatcher, Helper, Outlined, StructAt
from pulse.jit.dispatch_codegen import declare_dispatcher, declare_outlined
from pulse.jit.foreign_codegen import declare_c_function
from pulse.jit.structs_codegen import declare_struct_at

LANGUAGE = (
    address_codegen,
    atomics_codegen,
    cpu_registers_codegen,
    dots_codegen,
    raw_codegen,
    row_codegen,
    simd_codegen,
    simd_memory_codegen,
    stack_codegen,
    structs_codegen,
)


def register_with_numba() -> None:
    """Let compiled functions call the functions that were declared since the last call."""
    while UNREGISTERED:
        declared = UNREGISTERED.pop(0)
        if isinstance(declared, Helper):
            register_jitable(**declared.options)(declared.function)
        elif isinstance(declared, Dispatcher):
            declare_dispatcher(declared)
        elif isinstance(declared, Outlined):
            declare_outlined(declared)
        elif isinstance(declared, StructAt):
            declare_struct_at(declared)
        else:
            declare_c_function(declared)
