# pyright: basic, reportArgumentType=false
"""Machine code for single rows: a kernel with the words of a row as constants.

LLVM inlines the kernel and folds everything that depends on the words: counts and steps of loops, branches over forms,
offsets of operands. Sums keep the order of the kernel, so the results are bit-identical.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import llvmlite.binding as llvm

from pulse.jit.codegen.native_code import emit_code, optimise
from pulse.jit.language.declared import DISPATCHED_ROWS
from pulse.jit.processor import target_machine
from pulse.jit.registry import Kernel
from pulse.jit.rows.pointer import HEADER_WORDS
from pulse.jit.storage.kernel_file import NativeCode

INNER = "pulse_kernel"
OPAQUE = re.compile(r'(%\S+ =) (?:tail )?call i64 asm sideeffect "", "=r,0"\((i64 [^)]*)\)[^\n]*')
"""The code of ``raw.opaque``, which is removed here: LLVM may see the constants."""


def specialised_code(
    kernel: Kernel, symbol: str, rows: Sequence[tuple[int, ...]], applied: frozenset[int] | None
) -> NativeCode:
    """Compile a function for each row; ``symbol`` returns the address of a table of their addresses.

    rows     the words of each row, without the kernel and the length
    applied  the rows of dispatchers that they apply, and that are compiled; None: all
    Raises   CompileError: the code cannot be compiled
    """
    module = llvm.parse_assembly(_kernel_text(kernel, applied))
    module.link_in(llvm.parse_assembly(_functions_text(module, symbol, rows)))
    kernel_function = module.get_function(INNER)
    kernel_function.linkage = "internal"
    kernel_function.add_function_attribute("alwaysinline")
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    builder = llvm.create_pass_builder(target_machine(), options)
    builder.getModulePassManager().run(module, builder)
    return emit_code(module, symbol)


@lru_cache(maxsize=1)
def _kernel_text(kernel: Kernel, applied: frozenset[int] | None) -> str:
    token = DISPATCHED_ROWS.set(applied)
    try:
        module = optimise(kernel.name, INNER, kernel.function, kernel.signature, kernel.options)
    finally:
        DISPATCHED_ROWS.reset(token)
    return OPAQUE.sub(r"\1 add \2, 0", str(module))


def _functions_text(module, symbol: str, rows: Sequence[tuple[int, ...]]) -> str:
    """Return LLVM assembly of the functions, with the C signature of a kernel, and of their table."""
    (pair,) = module.get_function(INNER).arguments
    lines = [
        f'target triple = "{module.triple}"',
        f'target datalayout = "{module.data_layout}"',
        f"declare ptr @{INNER}({pair.type})",
    ]
    for index, words in enumerate(rows):
        values = ", ".join(f"i64 {word}" for word in (0, HEADER_WORDS + len(words), *words))
        lines.append(
            f"@{symbol}.words{index} = internal constant [{HEADER_WORDS + len(words)} x i64] [{values}], align 8\n"
            f"define internal ptr @{symbol}.row{index}(ptr %row, ptr %bases) {{\n"
            f"  %words = insertvalue {pair.type} undef, ptr @{symbol}.words{index}, 0\n"
            f"  %both = insertvalue {pair.type} %words, ptr %bases, 1\n"
            f"  %result = call ptr @{INNER}({pair.type} %both)\n  ret ptr %result\n}}"
        )
    functions = ", ".join(f"ptr @{symbol}.row{index}" for index in range(len(rows)))
    lines.append(f"@{symbol}.table = internal constant [{len(rows)} x ptr] [{functions}], align 8")
    lines.append(f"define ptr @{symbol}() {{\n  ret ptr @{symbol}.table\n}}")
    return "\n".join(lines)
