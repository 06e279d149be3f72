"""What the kernel of an operator from outside of this package is made of.

lowers, Lowering   how an op becomes rows: ``@lowers(MyOp)`` on a function ``(cx, node, op) -> [Value, …]``
Value              a tensor in memory: shape, strides, a buffer
kernel, device     a compiled function that runs a row, and helpers that it calls
pointers, lanes    what kernels are written in; see ``pulse.program.kernels``
"""

from pulse.errors import CompileError
from pulse.program.kernels.pointer import Bases, Row, f32, f64, i32, i64, number, real, real_bits, u8
from pulse.program.kernels.registry import device, kernel, named_kernel
from pulse.program.kernels.simd import LANES, vfma, vload, vload_part, vsplat, vstore, vstore_part
from pulse.program.lower.elementwise import broadcast
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value

__all__ = [
    "LANES",
    "Bases",
    "CompileError",
    "Lowering",
    "PulsedNode",
    "Row",
    "Value",
    "broadcast",
    "device",
    "f32",
    "f64",
    "i32",
    "i64",
    "kernel",
    "lowers",
    "named_kernel",
    "number",
    "real",
    "real_bits",
    "u8",
    "vfma",
    "vload",
    "vload_part",
    "vsplat",
    "vstore",
    "vstore_part",
]
