"""The machine code of kernels: they call nothing, cannot fail, and their loops use whole registers."""

import math
import re
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core import types

from pulse.errors import CompileError
from pulse.jit.codegen.native_code import optimise
from pulse.jit.processor import has_features
from pulse.jit.registry import KERNELS
from pulse.program.kernels import families as families
from pulse.program.kernels.matmul.product_codes import product_of_codes
from pulse.program.machine import machine
from tests.pulse.jit.assembly import (
    ARM,
    AVX2,
    AVX512,
    Machine,
    assert_only_known_calls,
    host,
    llvm_code,
    loops,
    module,
    vector_loops,
)
from tests.pulse.program.own_kernels import is_of_pulse

OURS = sorted(name for name, kernel in KERNELS.items() if is_of_pulse(kernel))
MAIN = ("depthwise", "gru", "matmul", "softmax", "layer_norm", "copy")
NO_VECTORS = {
    "tick": "it counts one register",
    "move": "it is one memmove, which the C library has in vectors",
    "keep_frame": "it is one memmove",
    "table_lookup": "it is a memmove for each row, or one for all",
    "scatter": "it is a memmove for each row",
    "last_frames": "it is a memmove for each frame, or one for all",
    "top_k": "it inserts one element after another into a sorted run",
    "look_up_codes": "it reads entries anywhere in a table",
    "reduce64": "it takes one element after another, of types that are rare",
    "arg_reduce64": "it takes one element after another, of types that are rare",
    "cum_sum": "its columns may be anywhere, and each sum waits for the one before it",
}
PLAIN_LOOPS = {
    "fill": "LLVM makes the vectors",
    "fill_ends": "LLVM makes the vectors of fills; frames are moved by memmove",
    "positions": "LLVM makes the vectors",
    "count_faults": "LLVM makes the vectors, of comparisons",
    "chain64": "LLVM makes the vectors of float64 and integers",
}
"""Vector width that LLVM prefers: half a register on some processors with AVX-512."""
QUICK = [("depthwise", AVX2), ("depthwise", AVX512), ("layer_norm", ARM)]
"""Kernels for other processors that the default suite compiles."""
MOVES = {"copy": "moves only", "gather": "moves only", "paired_copy": "moves only"}


def kernels_to_show(names: Any) -> Any:
    """The main kernels by default, the others in the slow run."""
    return [pytest.param(name, marks=() if name in MAIN else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", kernels_to_show(OURS))
def test_kernels_call_nothing_and_never_fail(name: str) -> None:
    """Kernels call no allocator and no interpreter, and raise no exception, so they never wait for one."""
    assert_only_known_calls(module(name))


def test_the_machine_calls_kernels_only() -> None:
    assert_only_known_calls(llvm_code(machine.RUN), pointers=True)


def optimise_alone(body: Any, sig: Any) -> Any:
    return optimise("plain", "plain", body, sig, {})


def steps(n: Any) -> Any:
    total = 0.0
    for i in range(0, 10, n):
        total += i
    return total


@pytest.mark.parametrize(
    "body",
    [lambda n: np.zeros(n).sum(), lambda n: 1.0 / n, lambda n: print(n) or 0.0, steps],
    ids=["array", "division", "print", "step"],
)
def test_functions_that_need_python_are_refused(body: Any) -> None:
    """Kernels that make an array, that may raise an error, that print."""
    with pytest.raises(CompileError, match="plain: may raise an exception, or needs Python or memory"):
        optimise_alone(body, types.float64(types.int64))


def test_a_call_of_the_c_library_is_found() -> None:
    with pytest.raises(AssertionError, match="calls tanh"):
        assert_only_known_calls(
            optimise_alone(lambda x: math.tanh(x), types.float64(types.float64)), allowed=set()
        )


@pytest.mark.parametrize("name", kernels_to_show(OURS))
def test_loops_use_whole_registers(name: str) -> None:
    """At least one innermost loop computes, or moves, in registers of the full width of this processor."""
    machine = host()
    if name in NO_VECTORS:
        assert not vector_loops(name, machine, machine.arithmetic), (
            f"{name} has vectors now: take it off the table"
        )
    elif name in PLAIN_LOOPS:
        assert vector_loops(name, machine, machine.any_vector)
    else:
        assert vector_loops(name, machine, machine.moves if name in MOVES else machine.arithmetic)


def test_the_tables_name_only_kernels_of_pulse() -> None:
    assert {*NO_VECTORS, *PLAIN_LOOPS, *MOVES, *MAIN} <= set(OURS)


@pytest.mark.parametrize(
    ("name", "processor"),
    [
        *QUICK,
        *(
            pytest.param(name, processor, marks=pytest.mark.slow)
            for processor in (AVX2, AVX512, ARM)
            for name in ("product", "gru", "chain", "depthwise")
            if (name, processor) not in QUICK
        ),
    ],
    ids=lambda parameter: getattr(parameter, "name", parameter),
)
def test_other_processors_get_vectors_too(name: str, processor: Machine) -> None:
    """The same LLVM code is compiled for them."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        llvm.Target.from_triple(processor.triple)
    except RuntimeError as error:
        pytest.skip(f"this LLVM does not compile for {processor.name}: {error}")
    assert vector_loops(name, processor, processor.arithmetic)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "gru", "lstm"])
def test_small_weights_are_not_widened_one_by_one(name: str) -> None:
    """bf16 pairs need no shuffle; codes meet digits in products of bytes, where the processor has them."""
    pairs = loops(host().assembly(llvm_code(KERNELS[name].forms["bf16"])))
    assert any(re.search(r"\bv?pslld\b|\bshll?\b.*v\d", line) for body in pairs for line in body)
    if has_features("avx512vnni", "avx512vbmi"):
        codes = loops(host().assembly(llvm_code(KERNELS[name].forms["int8"])))
        assert max(sum("vpdpbusd" in line for line in body) for body in codes) >= 8
    if name == "product" and has_features("avx512bf16"):
        halves = loops(host().assembly(llvm_code(product_of_codes.forms["bf16"])))
        assert max(sum("vdpbf16ps" in line for line in body) for body in halves) >= 8


def test_only_innermost_jumps_back_are_loops() -> None:
    text = """
.LBB0_1:
    movl %eax, %ebx
.LBB0_2:
    vaddps %zmm0, %zmm1, %zmm2
    jne .LBB0_2
    jmp .LBB0_3
    jne .LBB0_1
.LBB0_3:
    retq
"""
    (body,) = loops(text)
    assert [line.split()[0] for line in body] == [".LBB0_2:", "vaddps", "jne"]


def test_a_loop_that_sums_in_order_has_no_vector_arithmetic() -> None:
    """A sum in order, which may not be reordered, has no vector arithmetic in its loop."""
    machine = host()

    def in_order(x: Any, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += x[i]
        return total

    compiled: Any = numba.njit(in_order)
    compiled.compile((types.Array(types.float64, 1, "C"), types.int64))
    (text,) = compiled.inspect_asm().values()
    assert not any(re.search(machine.arithmetic, line) for body in loops(text) for line in body)
