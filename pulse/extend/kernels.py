"""The parts of an operator's kernel, for operators from outside this package.

lowers, Lowering   how an op becomes rows: ``@lowers(MyOp)`` on a function ``(lowering, node, op) -> [TensorView, …]``
TensorView         a tensor in memory: shape, strides, a buffer
Instruction        what a row is: named fields, tensors that are read or written, and numbers
kernel, device     a compiled function that runs a row, and helpers that it calls
LANES, v…          vectors, in which kernels are written; see ``pulse.jit``
"""

from pulse.errors import CompileError
from pulse.jit.language.simd import LANES, vfma, vload, vload_part, vsplat, vstore, vstore_part
from pulse.jit.registry import device, kernel, named_kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, updates, writes
from pulse.program.lower.elementwise import broadcast
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode

__all__ = [
    "LANES",
    "CompileError",
    "Instruction",
    "Lowering",
    "Operand",
    "PulsedNode",
    "TensorView",
    "broadcast",
    "device",
    "kernel",
    "lowers",
    "named_kernel",
    "reads",
    "updates",
    "vfma",
    "vload",
    "vload_part",
    "vsplat",
    "vstore",
    "vstore_part",
    "writes",
]
