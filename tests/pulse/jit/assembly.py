"""Kernels as machine code: compiled for this processor or another one, their loops, and the registers in them.

The LLVM code is kept beside the kernel's file: it is compiled for these tests once on a machine.
"""

import os
import re
from collections.abc import Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from pulse.jit.codegen.native_code import optimise
from pulse.jit.compiled import CompiledFunction
from pulse.jit.processor import processor, target_machine
from pulse.jit.registry import KERNELS

LABEL = re.compile(r"^([.\w$]+):")
JUMP = re.compile(r"^\s+(?:j\w+|b|b\.\w+|cbn?z|tbn?z)\s.*?([.\w$]+)\s*(?:#.*|//.*)?$")

LIBM = {
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "tanh"),
    *("atan2", "erf", "erfc", "expm1", "log1p", "sqrt"),
}
"""Functions of numbers: all that a kernel may call that is neither its own nor an instruction."""


@dataclass(frozen=True)
class Machine:
    """A processor: its triple and name as LLVM has them (empty: this one), and how its full registers look.

    arithmetic, moves  instructions on full registers, as a regular expression
    any_vector         moves of vectors, of any width
    """

    name: str
    triple: str
    processor: str
    arithmetic: str
    moves: str
    any_vector: str = r"\bv?mov(?:[au]p[sd]|dq[au]\w*)\b.*%[xyz]mm"

    def assembly(self, module: Any) -> str:
        """The code of an LLVM module for this processor."""
        if not self.triple:
            return target_machine().emit_assembly(module)
        target = llvm.Target.from_triple(self.triple).create_target_machine(cpu=self.processor, opt=3)
        module.triple, module.data_layout = self.triple, str(target.target_data)
        return target.emit_assembly(module)


def x86(name: str, processor: str, register: str, triple: str = "x86_64-unknown-linux-gnu") -> Machine:
    """A processor whose full registers have this letter: xmm, ymm, zmm."""
    functions = r"\bv?(?:f[n]?m(?:add|sub)\d*|add|sub|mul|div|max|min|and|or|xor|cmp\w*)(?:ps|pd)\b"
    return Machine(name, triple, processor, rf"{functions}.*%{register}", rf"\bv?mov\w+\b.*%{register}")


NEON_MOVES = r"\b(?:ldr|str|ldp|stp|ldur|stur)\s+q\d+"
NEON = r"\bf(?:mla|mls|add|sub|mul|div|max|min|cm)\w*\s+v\d+\.(?:4s|2d)", NEON_MOVES, NEON_MOVES
AVX2 = x86("avx2", "haswell", "ymm")
AVX512 = x86("avx512", "skylake-avx512", "zmm")
ARM = Machine("neon", "aarch64-unknown-linux-gnu", "cortex-a72", *NEON)


@cache
def host() -> Machine:
    """This processor, with the widest registers that it has."""
    machine = processor()
    if not machine.triple.startswith(("x86_64", "i686")):
        return Machine("host", "", "", *NEON)
    features = machine.features.split(",")
    register = "zmm" if "+avx512f" in features else "ymm" if "+avx" in features else "xmm"
    return x86("host", "", register, "")


def llvm_code(compiled: CompiledFunction) -> Any:
    """The optimised LLVM code of a function, a separate module; without what lets Python call it."""
    bitcode = _bitcode_path(compiled)
    if not bitcode.exists():
        return keep_llvm_code(compiled, compiled.name)
    return llvm.parse_bitcode(bitcode.read_bytes())


def keep_llvm_code(compiled: CompiledFunction, symbol: str) -> Any:
    """Make the LLVM code of a function, and store it for ``llvm_code``."""
    module = optimise(compiled.name, symbol, compiled.function, compiled.signature, compiled.options)
    bitcode = _bitcode_path(compiled)
    unfinished = bitcode.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(module.as_bitcode())
    os.replace(unfinished, bitcode)
    return module


def _bitcode_path(compiled: CompiledFunction) -> Path:
    path = compiled.path()
    assert path is not None
    return path.with_suffix(".bc")


def module(name: str) -> Any:
    """Return the LLVM code of a kernel."""
    return llvm_code(KERNELS[name])


def assert_only_known_calls(code: Any, pointers: bool = False, allowed: Set[str] = LIBM) -> None:
    """Own functions, instructions and those that are known are called, nothing else.

    All of the stack is taken at the entry, so a loop needs no more of it the longer it runs.
    ``pointers``: functions whose address is data may be called too.
    """
    defined = {function.name: function for function in code.functions if not function.is_declaration}
    declared = {function.name for function in code.functions}
    assert defined
    for function in defined.values():
        for place, block in enumerate(function.blocks):
            for instruction in block.instructions:
                if instruction.opcode == "call":
                    *_, callee = instruction.operands
                    if callee.name not in declared:
                        assert pointers or " asm " in str(instruction), f"{function.name} calls {instruction}"
                        continue
                    good = callee.name.startswith("llvm.") or callee.name in defined or callee.name in allowed
                    assert good, f"{function.name} calls {callee.name}"
                if instruction.opcode == "alloca":
                    assert place == 0, f"{function.name} takes stack on its way: {instruction}"


@cache
def assembly(name: str, machine: Machine) -> str:
    """The machine code of a kernel."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return machine.assembly(module(name))


def loops(text: str) -> list[list[str]]:
    """The bodies of the innermost loops: from a label to a jump back to it, with no other such pair inside."""
    lines = text.splitlines()
    labels = {match[1]: number for number, line in enumerate(lines) if (match := LABEL.match(line))}
    spans: dict[int, int] = {}
    for number, line in enumerate(lines):
        jump = JUMP.match(line)
        start = labels.get(jump[1]) if jump else None
        if start is not None and start < number:
            spans[start] = max(number, spans.get(start, 0))
    inner = [
        (start, stop)
        for start, stop in spans.items()
        if not any(start < other and spans[other] < stop for other in spans)
    ]
    return [lines[start : stop + 1] for start, stop in inner]


def vector_loops(name: str, machine: Machine, pattern: str) -> int:
    """How many innermost loops have an instruction of the pattern."""
    expected = re.compile(pattern)
    return sum(any(expected.search(line) for line in body) for body in loops(assembly(name, machine)))
