# pyright: basic
"""Register with numba: importing this registers the language, ``register_with_numba`` the declared functions."""

from importlib import import_module

from numba.extending import register_jitable

from pulse.jit.codegen.dispatch import declare_chooser, declare_dispatcher, declare_outlined
from pulse.jit.codegen.foreign import declare_c_function
from pulse.jit.codegen.structs import declare_struct_at
from pulse.jit.language.declared import UNREGISTERED, Chooser, Dispatcher, Helper, Outlined, StructAt

LANGUAGE = "address atomics cpu_registers dots raw row simd simd_memory stack structs tuples"
for _name in LANGUAGE.split():
    import_module(f"pulse.jit.codegen.{_name}")


def register_with_numba() -> None:
    """Make the functions callable from compiled functions that were declared since the last call."""
    while UNREGISTERED:
        declared = UNREGISTERED.pop(0)
        if isinstance(declared, Helper):
            register_jitable(**declared.options)(declared.function)
        elif isinstance(declared, Dispatcher):
            declare_dispatcher(declared)
        elif isinstance(declared, Chooser):
            declare_chooser(declared)
        elif isinstance(declared, Outlined):
            declare_outlined(declared)
        elif isinstance(declared, StructAt):
            declare_struct_at(declared)
        else:
            declare_c_function(declared)
