# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Bytes as object code: named constants for the target processor."""

from collections.abc import Mapping

from llvmlite import binding as llvm
from llvmlite import ir

from pulse.jit.processor import processor, target_machine
from pulse.support.mapping import ALIGNMENT


def constants_object(constants: Mapping[str, bytes]) -> bytes:
    """Return an object file with these constants, each on a cache line; they are visible inside one library."""
    machine = target_machine()
    module = ir.Module("constants")
    module.triple, module.data_layout = processor().triple, str(machine.target_data)
    for name, data in constants.items():
        kind = ir.ArrayType(ir.IntType(8), max(len(data), 1))
        variable = ir.GlobalVariable(module, kind, name)
        variable.global_constant = True
        variable.align = ALIGNMENT  # pyright: ignore[reportAttributeAccessIssue]
        variable.initializer = ir.Constant(kind, bytearray(data or b"\0"))  # pyright: ignore[reportAttributeAccessIssue]
    parsed = llvm.parse_assembly(str(module))
    for name in constants:
        parsed.get_global_variable(name).visibility = "hidden"
    return machine.emit_object(parsed)
