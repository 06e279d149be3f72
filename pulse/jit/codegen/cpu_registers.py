# pyright: basic, reportArgumentType=false, reportCallIssue=false
"""``cpu_registers`` for numba: instructions of x86 and ARM."""

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import alloca_once

from pulse.jit.codegen.foreign import external
from pulse.jit.codegen.pointer import INT64
from pulse.jit.codegen.simd import defines
from pulse.jit.language import cpu_registers
from pulse.jit.processor import processor

INT32, BYTE_POINTER = ir.IntType(32), ir.PointerType(ir.IntType(8))
X86_FLUSH = 1 << 15 | 1 << 6
"""The bits of MXCSR with which denormal results become 0 and denormal operands count as 0."""
ARM_FLUSH = 1 << 24
"""The bit of FPCR that does both."""


def _architecture(builder) -> str:
    here = processor()
    name = (here.triple if here.is_packaged else str(builder.module.triple)).split("-")[0]
    return {"x86_64": "x86", "i386": "x86", "i686": "x86", "arm64": "aarch64"}.get(name, name)


def _float_mode(builder):
    if _architecture(builder) == "x86":
        slot = alloca_once(builder, INT32)
        _call(builder, "llvm.x86.sse.stmxcsr", slot)
        return builder.zext(builder.load(slot), INT64)
    if _architecture(builder) == "aarch64":
        return builder.call(external(builder, "llvm.aarch64.get.fpcr", ir.FunctionType(INT64, [])), [])
    return INT64(0)


@defines(cpu_registers.restore_denormals, types.none, types.int64)
def _set_float_mode(builder, mode):
    if _architecture(builder) == "x86":
        slot = alloca_once(builder, INT32)
        builder.store(builder.trunc(mode, INT32), slot)
        _call(builder, "llvm.x86.sse.ldmxcsr", slot)
    elif _architecture(builder) == "aarch64":
        builder.call(
            external(builder, "llvm.aarch64.set.fpcr", ir.FunctionType(ir.VoidType(), [INT64])), [mode]
        )


def _call(builder, name, slot) -> None:
    function = external(builder, name, ir.FunctionType(ir.VoidType(), [BYTE_POINTER]))
    builder.call(function, [builder.bitcast(slot, BYTE_POINTER)])


@defines(cpu_registers.flush_denormals, types.int64)
def _flush_denormals(builder):
    previous_mode = _float_mode(builder)
    flush = X86_FLUSH if _architecture(builder) == "x86" else ARM_FLUSH
    _set_float_mode(builder, builder.or_(previous_mode, INT64(flush)))
    return previous_mode


@defines(cpu_registers.tick_count, types.int64)
def _tick_count(builder):
    counter = "readsteadycounter" if _architecture(builder) == "aarch64" else "readcyclecounter"
    return builder.call(external(builder, f"llvm.{counter}", ir.FunctionType(INT64, [])), [])


@defines(cpu_registers.pause, types.none)
def _pause(builder):
    if _architecture(builder) == "x86":
        function = external(builder, "llvm.x86.sse2.pause", ir.FunctionType(ir.VoidType(), []))
        builder.call(function, [])
    elif _architecture(builder) == "aarch64":
        function = external(builder, "llvm.aarch64.hint", ir.FunctionType(ir.VoidType(), [INT32]))
        builder.call(function, [INT32(1)])
