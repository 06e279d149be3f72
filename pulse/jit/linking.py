# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Link object code into this process, with llvmlite alone.

One engine links everything and is never freed, since a thread of a C library may be running its code. For a missing
name, LLVM's newer engine (LLJIT) would raise an error instead of ending the process, but llvmlite calls it experimental
and does not test it; so names are looked up first.
"""

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from pulse.errors import CompileError
from pulse.jit import python_call
from pulse.jit.processor import target_machine
from pulse.jit.storage.kernel_file import NativeCode


@cache
def _engine() -> Any:
    for name, address in python_call.addresses().items():
        llvm.add_symbol(name, address)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


def link(name: str, code: NativeCode) -> int:
    """Return the address of the function. One thread at a time. Raises CompileError: a C function is missing."""
    engine = _engine()
    if missing := [need for need in code.needs if llvm.address_of_symbol(need) is None]:
        raise CompileError(
            f"{name}: calls {', '.join(missing)}, which no library of this process has; load the library first"
        )
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.object))
    engine.finalize_object()
    return engine.get_function_address(code.symbol)
